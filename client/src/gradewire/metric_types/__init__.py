"""The metrics as values: typed parameters, and their form on the wire."""

from typing import get_args

from gradewire.errors import InvalidRequest
from gradewire.metric_types.auto import Auto
from gradewire.metric_types.base import Metric
from gradewire.metric_types.comparisons import Compare
from gradewire.metric_types.correctness import Correctness, Grader
from gradewire.metric_types.encoders import Bertscore, Preset, Sbert, Sfve, Smile, Synthetic
from gradewire.metric_types.judges import JudgeGrade, JudgeSimilarity, JudgeVerdict, Lave
from gradewire.metric_types.wire import wire_parameters
from gradewire.metric_types.words import (
    Bleu,
    Cider,
    EasyMatch,
    ExactMatch,
    LexicalMatch,
    Meteor,
    RougeL,
    SoftVqaAccuracy,
    ValueMatch,
    VqaAccuracy,
)
from gradewire_proto.v1 import types_pb2

PRESETS: tuple[str, ...] = get_args(Preset)
SYNTHETIC_MODES: tuple[str, ...] = get_args(Synthetic)

METRIC_TYPES: dict[str, type[Metric]] = {
    kind.name: kind
    for kind in (
        *(Smile, Sbert, Sfve, Bertscore),
        *(ExactMatch, EasyMatch, LexicalMatch, ValueMatch, VqaAccuracy, SoftVqaAccuracy),
        *(RougeL, Bleu, Meteor, Cider),
        *(Correctness, Grader),
        *(Lave, JudgeGrade, JudgeSimilarity, JudgeVerdict),
        Auto,
    )
}
"""The metrics that this client knows, by name; a new one is a dataclass and its place here."""
COMPARISON_TYPES: dict[str, type[Metric]] = {Compare.name: Compare}
"""What compares two answers, by name: no metric of an item."""
KNOWN_TYPES: dict[str, type[Metric]] = METRIC_TYPES | COMPARISON_TYPES


def metric_of(spec: types_pb2.MetricSpec, *, version: int | None = None) -> Metric:
    """The metric of a message; what it leaves unset is None.

    Raises:
        InvalidRequest: It names no metric, or one that this client does not know, or a choice that it does not know.
    """
    name = spec.WhichOneof("metric")
    kind = KNOWN_TYPES.get(name) if name is not None else None
    if name is None or kind is None:
        raise InvalidRequest(f"a message asks for none of {', '.join(KNOWN_TYPES)}")
    message = getattr(spec, name)
    values = {parameter.name: parameter.read(message) for parameter in wire_parameters(name).values()}
    return kind(**values, version=version)
