"""Judges of this machine for several server processes: one process runs them, and the others ask it."""
