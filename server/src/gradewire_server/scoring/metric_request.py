"""A metric of a request, ready to run."""

from dataclasses import dataclass
from typing import Any

from gradewire_server.domain.metric import Metric, ModelMetadata, Parameters


@dataclass(frozen=True, slots=True)
class MetricRequest:
    """A metric of a request, ready to run.

    Attributes:
        metric: From the registry.
        parameters: Of its `parameters_type`; the model is NAME or NAME@DIGEST.
        metadata: Of that model; empty for metrics without one.
    """

    metric: Metric[Any]
    parameters: Parameters
    metadata: ModelMetadata
