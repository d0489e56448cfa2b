"""The interface of a metric to the rest of the server, and its fitted thresholds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, Self, TypeVar

from gradewire_proto.choices import Corpus
from gradewire_proto.metric_parameters import PARAMETERS, ParameterInfo
from gradewire_server.domain.items import Item, ReferenceEntry
from gradewire_server.domain.needs import Preparation, Program


@dataclass(frozen=True, slots=True)
class Calibration:
    """A metric's threshold, or a fit of `correctness` or `auto`, for one encoder, as the encoder's description has it.

    Attributes:
        metric: The metric's name.
        metric_version: The version of the metric's definition that it was fitted for.
        parameters: The parameters of the scores it was fitted on, sorted; names and values as in metric identifiers.
        threshold: The score from which an answer counts as right; None if `fit` decides.
        sentence_weight: For `smile`, the weight it was fitted with; None for other metrics.
        described: Its origin and data, in one line for users.
        fit: For `correctness` and `auto`, the fit in JSON; "" for other metrics.
    """

    metric: str
    metric_version: int
    parameters: tuple[tuple[str, str], ...]
    threshold: float | None
    sentence_weight: float | None = None
    described: str = ""
    fit: str = ""

    def holds_for(self, parameters: Any) -> bool:
        """Return True if it was fitted on scores with these parameters (a dataclass), threshold and weight aside."""
        return all(_text(getattr(parameters, name, None)) == value for name, value in self.parameters)


def calibration_for(found: Sequence[Calibration], parameters: Any) -> Calibration | None:
    """Return the first calibration that holds for these parameters, or None."""
    return next((each for each in found if each.holds_for(parameters)), None)


def _text(value: Any) -> str:
    # The form in a metric identifier: the value of an enum, and "true" or "false".
    return str(value).lower() if isinstance(value, bool) else str(value)


class ParameterError(ValueError):
    """An invalid parameter value, for which the metric fails for all items with INVALID_PARAMETER."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message


@dataclass(frozen=True, slots=True)
class Parameters:
    """The base of a metric's parameters: a frozen dataclass with a resolved value for each field of its message.

    Fields have the names of types.proto. Enums are those of gradewire_proto.choices, whose values are the last part of
    the wire's names in lower case (SMILE_PRESET_FAST: "fast"). The base has no model, no prepared data and no corpus; a
    dataclass overrides a property with a field of the same name.
    """

    @property
    def model(self) -> str:
        """The plain name of the encoder or judge; "" without one."""
        return ""

    @property
    def reads_prepared(self) -> bool:
        """True if the score depends on the call's reference set, which the metric's identifier then names."""
        return self.corpus is Corpus.PREPARED

    @property
    def corpus(self) -> Corpus:
        """The corpus whose references determine the weights; NONE without weights."""
        return Corpus.NONE

    @property
    def prompt_name(self) -> str:
        """NAME/VERSION of the judge's prompt file; "" for metrics without a judge."""
        return ""

    @property
    def prompt_digest(self) -> str:
        """The SHA-256 of the prompt file, 64 hex digits, or ""."""
        return ""

    @property
    def calibration(self) -> str:
        """The origin of the fit in use, in one line for users; "" without one or if the request sets the value."""
        return ""

    @classmethod
    def preset_values(cls, preset: str | None) -> Mapping[str, Any]:
        """Return a preset's values by field, which replace the defaults; values in the request take precedence."""
        del preset
        return {}

    def resolved(self, metadata: "ModelMetadata") -> Self:
        """Return the parameters with the defaults that depend on the model filled in; raise ParameterError."""
        del metadata
        return self

    def asks_no_judge(self, metadata: "ModelMetadata") -> bool:
        """Return True if the metric asks its judge about no item, so that the judge need not exist."""
        del metadata
        return False


P = TypeVar("P", bound=Parameters)


def parameter_info(metric: str, name: str) -> ParameterInfo:
    """Return the documentation of a metric's parameter in types.proto."""
    return next(each for each in PARAMETERS[metric] if each.name == name)


@dataclass(frozen=True, slots=True)
class MetricInfo:
    """The description of a metric for Models.List and the documentation; its needs are those of default parameters."""

    name: str
    version: int
    description: str
    citation: str
    minimum: float = 0.0
    maximum: float = 1.0
    higher_is_better: bool = True
    needs_model: bool = False
    needs_synonyms: bool = False
    needs_judge: bool = False  # the model is a judge; `needs_model` is for encoders
    judge_parameter: str = ""  # the parameter for a judge in addition to the encoder `model`
    needs_grader: bool = False  # the model is a grader
    grader_parameter: str = ""  # the parameter for an optional grader in addition to the encoder `model`
    built_on: tuple["MetricInfo", ...] = ()  # metrics whose programs it runs; it also sees their fits
    advice: str = ""  # a measured comparison with cheaper metrics

    @property
    def parameters(self) -> tuple[ParameterInfo, ...]:
        """The parameters with their documentation in types.proto."""
        return PARAMETERS.get(self.name, ())

    @property
    def asks_judge(self) -> bool:
        """True if it may ask a judge, so that an item may take seconds instead of milliseconds."""
        return self.needs_judge or bool(self.judge_parameter)


@dataclass(frozen=True, slots=True)
class TokenLayer:
    """A hidden layer whose token vectors a model returns.

    Attributes:
        number: The layer's number, 1 for the first.
        baseline: BERTScore's precision, recall and F1 on unrelated texts, for rescaling; None if not measured.
    """

    number: int
    baseline: tuple[float, float, float] | None = None


@dataclass(frozen=True, slots=True)
class ModelMetadata:
    """The properties of a model that its metrics may use; empty for metrics without a model.

    Attributes:
        calibrations: Thresholds and fits for the model, of all metrics, in search order.
        outdated: Metrics with a fit for another version, each with that version; set by `seen_by` only.
        unreadable: Metrics with an unreadable fit, each with the way to fix it.
        token_layers: The layers that have token vectors, in ascending order.
        bertscore_layer: BERTScore's default layer; 0 without one.
        digest: The model's digest, 64 hex digits.
        judge: NAME@DIGEST of the judge used together with the model; "" without one.
        grader: NAME@DIGEST of the grader used together with the model; "" without one.
        temperature: The divisor that turns a grader's logit into that of a probability.
        rough_cosine_error: The largest error of a cosine between an approximate (`EmbedRoughly`) and an exact vector;
            None without approximate vectors.
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
        """Return a copy with only the fits for `metric` and the metrics that it runs, in their current versions."""
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
    """A pure scoring rule without I/O, clock or model; the registry finds it in its file below metrics/."""

    @property
    def info(self) -> MetricInfo:
        """The metric's description."""

    @property
    def parameters_type(self) -> type[P]:
        """The dataclass of its parameters, whose constructor validates them and raises ParameterError."""

    def score(self, item: Item, /, parameters: P, metadata: ModelMetadata) -> Program:
        """Return a program that grades the item, and itself checks it (blank references, blank prediction)."""

    def prepare(self, entry: ReferenceEntry, /, parameters: P) -> Preparation:
        """Return a program that requests everything that `score` needs for these references, to fill the cache."""
