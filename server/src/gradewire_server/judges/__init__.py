"""Judges: language models on this machine or on a server, with a queue of their own."""
