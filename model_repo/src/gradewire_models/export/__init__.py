"""Exports any sentence encoder into the repository; of its modules `run`, `exporter` and `tokens` alone import torch.

Needs the extra ``export``.
"""
