"""Exports any sentence encoder into the repository. Needs the extra ``export``.

Only `exporter` and `tokens` import torch or transformers.
"""
