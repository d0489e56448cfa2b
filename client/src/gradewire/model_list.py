"""What a server can do."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """An encoder or a judge; attributes as in gradewire.v1.Model, `state` is LOADED, BUILT, MISSING or BROKEN."""

    name: str
    digest: str
    state: str
    message: str
    how_to_get: str
    is_default: bool
    dims: int
    max_tokens: int
    licence: str
    numeric_class: str
    kind: str = "encoder"
    remarks: tuple[str, ...] = ()
    without_metrics: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MetricParameterInfo:
    """A parameter of a metric, in words."""

    name: str
    description: str
    default_value: str
    allowed: str


@dataclass(frozen=True, slots=True)
class MetricInfo:
    """A metric; attributes as in gradewire.v1.Metric."""

    name: str
    version: int
    description: str
    minimum: float
    maximum: float
    higher_is_better: bool
    citation: str
    parameters: tuple[MetricParameterInfo, ...]
    needs_model: bool
    available: bool
    missing: str
    needs_judge: bool = False
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request may hold; attributes as in gradewire.v1.Limits. 0 means that the server does not say."""

    max_items_per_request: int = 0
    max_metrics_per_request: int = 0
    max_references_per_item: int = 0
    max_item_bytes: int = 0
    max_message_bytes: int = 0
    stream_window_items: int = 0
    max_windows: int = 0
    max_prediction_words: int = 0


@dataclass(frozen=True, slots=True)
class ModelList:
    """What a server can do.

    Attributes:
        models: Encoders and judges, those that could be had included.
        metrics: With versions, ranges and parameters.
        limits: Of one request.
        server_version: Version of gradewire there.
    """

    models: tuple[ModelInfo, ...]
    metrics: tuple[MetricInfo, ...]
    limits: Limits
    server_version: str
