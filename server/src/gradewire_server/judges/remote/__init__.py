"""Judges behind servers: what all kinds share, and the backends `openai`, `decisions` and `triton`."""
