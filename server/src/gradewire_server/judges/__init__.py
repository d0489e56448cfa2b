"""Judges: language models with a queue of their own, on this machine or on a server."""
