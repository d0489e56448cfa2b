"""Judges on this machine, each in its own worker process."""
