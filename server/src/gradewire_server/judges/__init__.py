"""Judges: language models behind a queue of their own, wherever they run."""
