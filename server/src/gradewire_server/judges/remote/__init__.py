"""Judges on servers: code that all kinds share, and the backends `openai`, `decisions` and `triton`."""
