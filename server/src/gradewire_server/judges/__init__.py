"""Judges: language models on this machine or on a server, with a separate queue."""
