"""Run training commands, with checkpoints, progress and results."""
