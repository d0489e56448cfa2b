"""Run a training, with checkpoints, progress and results."""
