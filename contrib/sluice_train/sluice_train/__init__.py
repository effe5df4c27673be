"""Saving, stopping, resuming and reporting for a training script, under Sluice or without it."""
