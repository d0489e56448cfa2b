"""Exports any sentence encoder into the repository. Needs the extra ``export``; only `run` and below import torch."""
