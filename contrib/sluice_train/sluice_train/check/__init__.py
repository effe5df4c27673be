"""Tries a software environment on a node: what it has imports, two ranks meet, an attention kernel
runs where there is one. `python3 -m sluice_train.check --result FILE [NAME…]` within it."""
