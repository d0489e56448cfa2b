"""Judges on servers: the backends `openai`, `decisions` and `triton`."""
