"""Judges on this machine, each in a worker process."""
