"""Runs a training: steps, checkpoints, what is shown and what is written."""
