"""Exports any sentence encoder into the repository. Needs the extra ``export``; only `run` and below import torch."""

from gradewire_models.export.errors import ExportError
from gradewire_models.export.modules import POOLINGS, Pooling
from gradewire_models.export.plan import ExportOptions

__all__ = ["POOLINGS", "ExportError", "ExportOptions", "Pooling"]
