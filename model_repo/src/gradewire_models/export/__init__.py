"""Export any sentence encoder into the repository. Needs the extra ``export``.

Only the modules `run`, `exporter` and `tokens` import torch.
"""
