"""What a training run needs, takes and costs, before it is sent. Pure: cards and prices come in.

Amounts of money are exact integers; physics is floating point. Each number is a `Figure`: its
band, its formula in the symbols of docs/planner.md, and the keys of its sources.
"""
