"""Judges behind OpenAI-compatible servers."""
