"""Judges, which are language models on this machine or on a server."""
