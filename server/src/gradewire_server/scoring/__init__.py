"""Run a request's metrics: combine their needs into port calls, and resume each metric with the answers."""

from gradewire_server.scoring.prepare import PreparedChunk
from gradewire_server.scoring.scorer import MetricRequest, Scorer

__all__ = ["MetricRequest", "PreparedChunk", "Scorer"]
