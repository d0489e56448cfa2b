"""Runs the metrics of a request: merges what they need into calls of the ports and hands each its answers."""

from gradewire_server.scoring.prepare import PreparedChunk
from gradewire_server.scoring.scorer import MetricRequest, Scorer

__all__ = ["MetricRequest", "PreparedChunk", "Scorer"]
