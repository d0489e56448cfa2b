"""Run a training: steps, checkpoints, progress and results."""
