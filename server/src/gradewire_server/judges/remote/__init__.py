"""Judges behind servers: the backends `openai` and `decisions`, and the parts that they share."""
