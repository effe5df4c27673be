"""Sluice: a web gateway to a Slurm GPU cluster."""

__version__ = "0.1.0"
