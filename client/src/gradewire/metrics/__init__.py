"""Metrics as values: typed parameters and their wire format."""

from typing import TypeAlias, get_args

from gradewire.errors import InvalidRequest
from gradewire.metrics import generated
from gradewire.metrics.base import Metric, wire_parameters
from gradewire.metrics.generated import *
from gradewire.metrics.generated import METRICS, Compare, SmilePreset, SyntheticMode
from gradewire_proto.v1 import types_pb2

__all__ = [
    "COMPARISON_TYPES",
    "KNOWN_TYPES",
    "METRIC_TYPES",
    "PRESETS",
    "SYNTHETIC_MODES",
    "ComparisonLike",
    "Preset",
    "Synthetic",
    "metric_of",
]
__all__ += generated.__all__

Preset: TypeAlias = SmilePreset
Synthetic: TypeAlias = SyntheticMode
ComparisonLike: TypeAlias = str | Compare
"""A comparison, or its identifier, such as "compare?references=true"."""

PRESETS: tuple[str, ...] = get_args(Preset)
SYNTHETIC_MODES: tuple[str, ...] = get_args(Synthetic)

KNOWN_TYPES: dict[str, type[Metric]] = {kind.name: kind for kind in METRICS}
"""All metrics and comparisons that this client knows, by name, in the order of types.proto."""
METRIC_TYPES: dict[str, type[Metric]] = {name: kind for name, kind in KNOWN_TYPES.items() if not kind.needs_pair}
COMPARISON_TYPES: dict[str, type[Metric]] = {name: kind for name, kind in KNOWN_TYPES.items() if kind.needs_pair}
"""Metrics that compare two answers, by name."""


def metric_of(spec: types_pb2.MetricSpec, *, version: int | None = None) -> Metric:
    """Return a message's metric, with None for unset parameters.

    Raises:
        InvalidRequest: The message has no metric, or this client does not know its metric or one of its choices.
    """
    name = spec.WhichOneof("metric")
    kind = KNOWN_TYPES.get(name) if name is not None else None
    if name is None or kind is None:
        raise InvalidRequest(f"a message has no known metric: use one of {', '.join(KNOWN_TYPES)}")
    message = getattr(spec, name)
    values = {parameter.name: parameter.read(message) for parameter in wire_parameters(name).values()}
    return kind(**values, version=version)
