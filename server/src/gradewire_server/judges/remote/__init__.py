"""Judges on servers: the backends `openai`, `decisions` and `triton`, and the code that they share."""
