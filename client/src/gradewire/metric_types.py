"""The metrics as values: typed parameters, and their form on the wire."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

from gradewire.errors import InvalidRequest
from gradewire_proto.v1 import types_pb2

Preset = Literal["v1", "fast", "paper", "reference_code"]
Synthetic = Literal["none", "inline", "prepared"]

PRESETS: tuple[str, ...] = get_args(Preset)
SYNTHETIC_MODES: tuple[str, ...] = get_args(Synthetic)


@dataclass(frozen=True, slots=True, kw_only=True)
class Smile:
    """SMILE: sentence similarity, best keyword window and exact words in one score, 0 to 1.

    Attributes:
        preset: v1 (default), fast, paper or reference_code; None leaves it to the call, then to the server.
        synthetic: What the sentence is compared with: the reference itself (none, default), the item's
            `synthetic_answers` (inline), or those stored by `prepare` (prepared).
        reference_set: Where prepared synthetic answers are looked up, and means them; None: the call's. A call has one.
        sentence_weight: Weight of the sentence term, 0 to 1; None: the preset's.
        model: Encoder, NAME or NAME@DIGEST (at least 8 hex digits); None: the server's default.
        version: Insist on this version of the metric's definition; None: any.
    """

    name: ClassVar[Literal["smile"]] = "smile"
    preset: Preset | None = None
    synthetic: Synthetic | None = None
    reference_set: str | None = None
    sentence_weight: float | None = None
    model: str | None = None
    version: int | None = None

    def __post_init__(self) -> None:
        _check_choice("preset", self.preset, PRESETS)
        _check_choice("synthetic", self.synthetic, SYNTHETIC_MODES)

    def to_spec(self) -> types_pb2.MetricSpec:
        """The metric as the wire has it, where the reference set belongs to the request."""
        return types_pb2.MetricSpec(
            smile=types_pb2.SmileParameters(
                preset=types_pb2.SmilePreset.Value(f"SMILE_PRESET_{(self.preset or 'UNSPECIFIED').upper()}"),
                synthetic=types_pb2.SyntheticMode.Value(f"SYNTHETIC_MODE_{(self.synthetic or 'UNSPECIFIED').upper()}"),
                sentence_weight=self.sentence_weight,
                model=self.model or "",
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sbert:
    """Largest cosine of the sentence vectors of prediction and references, -1 to 1; attributes as in `Smile`."""

    name: ClassVar[Literal["sbert"]] = "sbert"
    model: str | None = None
    version: int | None = None

    def to_spec(self) -> types_pb2.MetricSpec:
        """The metric as the wire has it."""
        return types_pb2.MetricSpec(sbert=types_pb2.SbertParameters(model=self.model or ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactMatch:
    """1 when the prediction equals a reference after SQuAD normalisation, else 0; `version` as in `Smile`."""

    name: ClassVar[Literal["exact_match"]] = "exact_match"
    version: int | None = None

    def to_spec(self) -> types_pb2.MetricSpec:
        """The metric as the wire has it."""
        return types_pb2.MetricSpec(exact_match=types_pb2.ExactMatchParameters())


@dataclass(frozen=True, slots=True, kw_only=True)
class EasyMatch:
    """1 when a reference occurs in the prediction as consecutive whole words, else 0; `version` as in `Smile`."""

    name: ClassVar[Literal["easy_match"]] = "easy_match"
    version: int | None = None

    def to_spec(self) -> types_pb2.MetricSpec:
        """The metric as the wire has it."""
        return types_pb2.MetricSpec(easy_match=types_pb2.EasyMatchParameters())


Metric = Smile | Sbert | ExactMatch | EasyMatch

METRIC_TYPES: dict[str, type[Smile | Sbert | ExactMatch | EasyMatch]] = {
    kind.name: kind for kind in (Smile, Sbert, ExactMatch, EasyMatch)
}


def metric_of(spec: types_pb2.MetricSpec, *, version: int | None = None) -> Metric:
    """The metric of a message; what it leaves unset is None.

    Raises:
        InvalidRequest: It names no metric, or one that this client does not know.
    """
    match spec.WhichOneof("metric"):
        case "smile":
            smile = spec.smile
            return Smile(
                preset=_choice_of(types_pb2.SmilePreset.Name(smile.preset), "SMILE_PRESET_"),
                synthetic=_choice_of(types_pb2.SyntheticMode.Name(smile.synthetic), "SYNTHETIC_MODE_"),
                sentence_weight=smile.sentence_weight if smile.HasField("sentence_weight") else None,
                model=smile.model or None,
                version=version,
            )
        case "sbert":
            return Sbert(model=spec.sbert.model or None, version=version)
        case "exact_match":
            return ExactMatch(version=version)
        case "easy_match":
            return EasyMatch(version=version)
        case _:
            raise InvalidRequest(f"a message asks for none of {', '.join(METRIC_TYPES)}")


def _choice_of(name: str, prefix: str) -> Any:
    tail = name.removeprefix(prefix).lower()
    return None if tail == "unspecified" else tail


def _check_choice(parameter: str, value: str | None, allowed: tuple[str, ...]) -> None:
    if value is not None and value not in allowed:
        raise InvalidRequest(f"smile has no {parameter} {value!r}: take one of {', '.join(allowed)}")
