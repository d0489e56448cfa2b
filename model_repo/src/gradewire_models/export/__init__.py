"""Export any sentence encoder into the repository; this package needs the extra ``export``.

Only the modules `run`, `exporter` and `tokens` import torch.
"""
