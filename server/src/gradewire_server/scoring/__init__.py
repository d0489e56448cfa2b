"""Run the metrics of a request: merge their needs into calls of the ports, and resume each with its answers."""

from gradewire_server.scoring.prepare import PreparedChunk
from gradewire_server.scoring.scorer import MetricRequest, Scorer

__all__ = ["MetricRequest", "PreparedChunk", "Scorer"]
