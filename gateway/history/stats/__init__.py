"""Exact statistics of waits and runs over the files of the history.

NumPy is imported by these modules: import them where they are needed alone.
"""
