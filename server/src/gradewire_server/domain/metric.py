"""The definition of a metric, as the rest of the server sees it, and fits of its threshold."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, Self, TypeVar

from gradewire_proto.choices import Corpus
from gradewire_proto.metric_parameters import PARAMETERS, ParameterInfo
from gradewire_server.domain.items import Item, ReferenceEntry
from gradewire_server.domain.needs import Preparation, Program


@dataclass(frozen=True, slots=True)
class Calibration:
    """A threshold of one metric, or a fit of `correctness` or `auto`, for one encoder, as its description carries it.

    Attributes:
        metric: Name of the metric.
        metric_version: Of the metric's definition; it holds for that one only.
        parameters: Names and values, as a metric line writes them, that scores must have for it to hold; sorted.
        threshold: Score from which an answer counts as right; None where `fit` says all.
        sentence_weight: Of `smile`: the weight that it was fitted with; None for other metrics.
        described: Whose fit, on what; one line for people.
        fit: Of `correctness` and `auto`: its JSON as it was stored; "" for other metrics.
    """

    metric: str
    metric_version: int
    parameters: tuple[tuple[str, str], ...]
    threshold: float | None
    sentence_weight: float | None = None
    described: str = ""
    fit: str = ""

    def holds_for(self, parameters: Any) -> bool:
        """Whether it was fitted on scores with these parameters (a dataclass), threshold and weight left aside."""
        return all(_text(getattr(parameters, name, None)) == value for name, value in self.parameters)


def calibration_for(found: Sequence[Calibration], parameters: Any) -> Calibration | None:
    """The first that holds for these parameters, or None."""
    return next((each for each in found if each.holds_for(parameters)), None)


def _text(value: Any) -> str:
    # The form of a metric line: enums are their values, true and false are lower-case.
    return str(value).lower() if isinstance(value, bool) else str(value)


class ParameterError(ValueError):
    """A parameter value is out of range: the metric fails for all items with INVALID_PARAMETER."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message


@dataclass(frozen=True, slots=True)
class Parameters:
    """Base of a frozen dataclass with the resolved values (no unset ones) of a metric's message in types.proto.

    Fields are named as there. Enums are those of gradewire_proto.choices, whose values are the lower-case tail of the
    wire's names (SMILE_PRESET_FAST: "fast"). By itself it has no model, nothing prepared, no corpus and nothing to
    resolve; a dataclass that has a field of one of these names overrides it.
    """

    @property
    def model(self) -> str:
        """Plain name of the encoder or judge, "" for none."""
        return ""

    @property
    def reads_prepared(self) -> bool:
        """Whether the score depends on the call's reference set, which its line names then."""
        return self.corpus is Corpus.PREPARED

    @property
    def corpus(self) -> Corpus:
        """Which references weights are counted over; NONE where there are no weights."""
        return Corpus.NONE

    @property
    def prompt_name(self) -> str:
        """NAME/VERSION of the prompt file that a judge is shown, "" for metrics without a judge."""
        return ""

    @property
    def prompt_digest(self) -> str:
        """SHA-256 of that file, 64 hex digits, or ""."""
        return ""

    @property
    def calibration(self) -> str:
        """Whose fit is used, one line for people; "" where none is: what the request says itself is nobody's fit."""
        return ""

    @classmethod
    def preset_values(cls, preset: str | None) -> Mapping[str, Any]:
        """What a preset puts in place of the defaults, by field; what a request says itself goes before it."""
        del preset
        return {}

    def resolved(self, metadata: "ModelMetadata") -> Self:
        """The parameters with those defaults filled in that depend on the model; raises ParameterError."""
        del metadata
        return self

    def asks_no_judge(self, metadata: "ModelMetadata") -> bool:
        """Whether the judge beside the model is asked about no item, so that the metric needs none to be there."""
        del metadata
        return False


P = TypeVar("P", bound=Parameters)


def parameter_info(metric: str, name: str) -> ParameterInfo:
    """Return the texts of a metric's parameter, as types.proto has them."""
    return next(each for each in PARAMETERS[metric] if each.name == name)


@dataclass(frozen=True, slots=True)
class MetricInfo:
    """A metric's public face, for Models.List and the documentation; needs are those of its default parameters."""

    name: str
    version: int
    description: str
    citation: str
    minimum: float = 0.0
    maximum: float = 1.0
    higher_is_better: bool = True
    needs_model: bool = False
    needs_synonyms: bool = False
    needs_judge: bool = False  # its model is a judge; `needs_model` is an encoder
    judge_parameter: str = ""  # names a judge beside the encoder `model`
    needs_grader: bool = False  # its model is a grader
    grader_parameter: str = ""  # names a grader beside the encoder `model`, or none
    built_on: tuple["MetricInfo", ...] = ()  # metrics whose programs it runs: it sees what was fitted for them too
    advice: str = ""  # how it compares with cheaper metrics, where that was measured

    @property
    def parameters(self) -> tuple[ParameterInfo, ...]:
        """Its parameters with their texts, as types.proto has them."""
        return PARAMETERS.get(self.name, ())

    @property
    def asks_judge(self) -> bool:
        """Whether it may ask a judge, so that an item may take seconds and not milliseconds."""
        return self.needs_judge or bool(self.judge_parameter)


@dataclass(frozen=True, slots=True)
class TokenLayer:
    """A hidden layer whose token vectors a model gives.

    Attributes:
        number: 1 for the first.
        baseline: Precision, recall and F1 of BERTScore on unrelated texts, for rescaling; None where unmeasured.
    """

    number: int
    baseline: tuple[float, float, float] | None = None


@dataclass(frozen=True, slots=True)
class ModelMetadata:
    """What a metric may know of the model it runs on; all empty for metrics without one.

    Attributes:
        calibrations: Thresholds and fits for it, of any metric; in the order in which they are looked for.
        outdated: Metrics with something that was fitted for another version of them, each with that version; from
            `seen_by` alone.
        unreadable: Metrics with something fitted that cannot be read, each with what to do about it.
        token_layers: Layers that token vectors can be had of, ascending.
        bertscore_layer: The one that BERTScore takes unless told otherwise; 0 where there is none.
        digest: 64 hex digits, whose vectors these are.
        judge: NAME@DIGEST of the judge that is asked beside the model; empty where none is.
        grader: The same of the grader.
        temperature: Of a grader: what its logit is divided by to be that of a probability.
        rough_cosine_error: Largest error of a cosine of an approximate vector (`EmbedRoughly`) and an exact one; None
            where there are no approximate vectors.
    """

    calibrations: tuple[Calibration, ...] = ()
    outdated: tuple[tuple[str, int], ...] = ()
    unreadable: tuple[tuple[str, str], ...] = ()
    token_layers: tuple[TokenLayer, ...] = ()
    bertscore_layer: int = 0
    digest: str = ""
    judge: str = ""
    grader: str = ""
    temperature: float = 1.0
    rough_cosine_error: float | None = None

    def seen_by(self, metric: "MetricInfo") -> Self:
        """Without what was fitted for metrics that it does not run, or for another version of one that it does."""
        own = {(each.name, each.version) for each in (metric, *metric.built_on)}
        names = {name for name, _ in own}
        fitted = [*self.outdated, *((each.metric, each.metric_version) for each in self.calibrations)]
        return replace(
            self,
            calibrations=tuple(each for each in self.calibrations if (each.metric, each.metric_version) in own),
            outdated=tuple(each for each in fitted if each[0] in names and each not in own),
            unreadable=tuple(each for each in self.unreadable if each[0] in names),
        )


NO_MODEL = ModelMetadata()


class Metric(Protocol, Generic[P]):
    """A pure scoring rule: no I/O, no clock, no model. One file in a room of metrics/, where the registry finds it."""

    @property
    def info(self) -> MetricInfo:
        """Name, version, range, parameters, citation."""

    @property
    def parameters_type(self) -> type[P]:
        """Dataclass of its parameters; constructing it validates and raises ParameterError."""

    def score(self, item: Item, /, parameters: P, metadata: ModelMetadata) -> Program:
        """A program that grades the item; it checks the item itself (blank references, blank prediction)."""

    def prepare(self, entry: ReferenceEntry, /, parameters: P) -> Preparation:
        """A program that asks for all that `score` will need of these references, so that the cache holds it."""
