"""A real Slurm on one bare Debian machine, for development and tests.

`contrib.devcluster.instance.Instance` is the way in; docs/devcluster.md tells the rest.
"""
