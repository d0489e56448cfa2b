"""What a server can do."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """An encoder or a judge.

    Attributes:
        digest: 64 hex digits; empty while MISSING.
        state: LOADED, BUILT, MISSING or BROKEN; UNKNOWN where the server is newer and says something else.
        message: What `state` does not say, for people.
        how_to_get: The command that makes it available; empty when it is.
        is_default: Whether it is what a call without a model (or judge) takes.
        max_tokens: Longer texts are cut here, with the warning TRUNCATED.
        numeric_class: fp32-cpu, …: part of the digest, for it can change scores.
        kind: "encoder", "grader" or "judge".
        remarks: What one should know before using it.
        without_metrics: Metrics that the encoder cannot compute as it is built, by name, and why.
        sees_images: Whether the judge can be shown pictures; certain once it is LOADED, until then what the server's
            settings say of it.
    """

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
    sees_images: bool = False


@dataclass(frozen=True, slots=True)
class MetricParameterInfo:
    """A parameter of a metric, in words."""

    name: str
    description: str
    default_value: str
    allowed: str


@dataclass(frozen=True, slots=True)
class MetricInfo:
    """A metric.

    Attributes:
        minimum: Least possible score.
        maximum: Largest possible score.
        available: False while nothing that it needs is loaded; `missing` says what.
        needs_judge: Whether its model is a judge.
        needs_grader: Whether its model is a grader.
        advice: How it compares with cheaper metrics, where that was measured.
    """

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
    needs_grader: bool = False
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request may hold; 0 means that the server does not say.

    Attributes:
        max_item_bytes: All strings of one item, as UTF-8.
        stream_window_items: Items of one stream in work at a time.
        max_windows: Windows of one prediction that smile looks at, from its first `max_prediction_words` words.
    """

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
        comparisons: What `Client.compare` takes, as metrics; their ranges say nothing.
    """

    models: tuple[ModelInfo, ...]
    metrics: tuple[MetricInfo, ...]
    limits: Limits
    server_version: str
    comparisons: tuple[MetricInfo, ...] = ()
