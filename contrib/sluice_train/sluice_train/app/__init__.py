"""An application on the node: a program with pages, behind a door. Not for scripts.

`python3 -m sluice_train.app run …` is what its job runs; docs/engineering/workbench.md.
"""
