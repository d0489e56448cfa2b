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
    """A metric's threshold, or a fit for `correctness` or `auto`. It comes from the description of its encoder.

    Attributes:
        metric_version: The version of the metric's definition that the calibration was fitted for.
        parameters: The parameters of the scores that were used for the fit, sorted, with the names and values that
            metric identifiers contain.
        threshold: The score from which an answer counts as right; None if `fit` decides.
        sentence_weight: For `smile`, the sentence weight that the fit used; None for other metrics.
        described: The calibration's origin and data, in one line for users.
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
        """Return True if the fit used scores with these parameters (a dataclass), ignoring the threshold and weight."""
        return all(_text(getattr(parameters, name, None)) == value for name, value in self.parameters)


def calibration_for(found: Sequence[Calibration], parameters: Any) -> Calibration | None:
    """Return the first calibration that holds for these parameters, or None."""
    return next((each for each in found if each.holds_for(parameters)), None)


def _text(value: Any) -> str:
    # Metric identifiers contain the value of an enum, and "true" or "false".
    return str(value).lower() if isinstance(value, bool) else str(value)


class ParameterError(ValueError):
    """An invalid parameter value. The metric fails for all items with INVALID_PARAMETER."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message


@dataclass(frozen=True, slots=True)
class Parameters:
    """The base of a metric's parameters, a frozen dataclass with a resolved value for each field of its message.

    Fields have the same names as in types.proto, and enums are from gradewire_proto.choices. An enum's value is the end
    of the wire name in lower case: "fast" for SMILE_PRESET_FAST. The base has no model, no prepared data and no corpus;
    a dataclass overrides a property with a field of the same name.
    """

    @property
    def model(self) -> str:
        """The name of the encoder or judge, without a digest; "" without a model."""
        return ""

    @property
    def reads_prepared(self) -> bool:
        """True if the score depends on the request's reference set. The metric identifier then names the set."""
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
        """The SHA-256 of the prompt file, 64 hex digits; "" for metrics without a judge."""
        return ""

    @property
    def calibration(self) -> str:
        """The origin of the fit in use, in one line for users; "" without a fit or if the request sets the value."""
        return ""

    @classmethod
    def preset_values(cls, preset: str | None) -> Mapping[str, Any]:
        """Return a preset's values by field. They replace the defaults, but not values that the request sets."""
        del preset
        return {}

    def resolved(self, metadata: "ModelMetadata") -> Self:
        """Return the parameters with the model's defaults filled in; may raise ParameterError."""
        del metadata
        return self

    def asks_no_judge(self, metadata: "ModelMetadata") -> bool:
        """Return True if the metric never asks its judge, so that the judge need not exist."""
        del metadata
        return False


P = TypeVar("P", bound=Parameters)


def parameter_info(metric: str, name: str) -> ParameterInfo:
    """Return the documentation of a metric's parameter in types.proto."""
    return next(each for each in PARAMETERS[metric] if each.name == name)


@dataclass(frozen=True, slots=True)
class MetricInfo:
    """The description of a metric for Models.List and the documentation. The `needs_…` fields assume the defaults."""

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
    built_on: tuple["MetricInfo", ...] = ()  # metrics whose programs this metric runs; it also sees their fits
    advice: str = ""  # a measured comparison with cheaper metrics

    @property
    def parameters(self) -> tuple[ParameterInfo, ...]:
        """The parameters with their documentation in types.proto."""
        return PARAMETERS.get(self.name, ())

    @property
    def asks_judge(self) -> bool:
        """True if the metric may ask a judge, so that an item may need seconds instead of milliseconds."""
        return self.needs_judge or bool(self.judge_parameter)


@dataclass(frozen=True, slots=True)
class TokenLayer:
    """A hidden layer whose token vectors a model returns.

    Attributes:
        number: The layer's number, starting at 1.
        baseline: BERTScore's precision, recall and F1 on unrelated texts, for rescaling; None if not measured.
    """

    number: int
    baseline: tuple[float, float, float] | None = None


@dataclass(frozen=True, slots=True)
class ModelMetadata:
    """The properties of a model that its metrics may use; empty for metrics without a model.

    Attributes:
        calibrations: All metrics' thresholds and fits for the model, in search order.
        outdated: Metrics that have a fit only for another version, each with the fit's version; set by `seen_by`.
        unreadable: Metrics with an unreadable fit, each with a message that says how to fix it.
        token_layers: The layers that have token vectors, in ascending order.
        bertscore_layer: BERTScore's default layer; 0 without a default.
        digest: The model's digest, 64 hex digits.
        judge: NAME@DIGEST of the judge used together with the model; "" without a judge.
        grader: NAME@DIGEST of the grader used together with the model; "" without a grader.
        temperature: The divisor that calibrates a grader's logit before it becomes a probability.
        rough_cosine_error: The maximum error of a cosine between an approximate vector (`EmbedRoughly`) and an exact
            one; None without approximate vectors.
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
        """Return a copy with only the fits for the current versions of `metric` and of the metrics that it runs."""
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
    """A pure scoring rule that uses no I/O, clock or model; the registry finds it in its file below metrics/."""

    @property
    def info(self) -> MetricInfo:
        """The metric's description."""

    @property
    def parameters_type(self) -> type[P]:
        """The dataclass for the metric's parameters. Its constructor validates them and raises ParameterError."""

    def score(self, item: Item, /, parameters: P, metadata: ModelMetadata) -> Program:
        """Return a program that checks the item (blank references, blank prediction) and grades it."""

    def prepare(self, entry: ReferenceEntry, /, parameters: P) -> Preparation:
        """Return a program that fills the cache with everything that `score` needs for these references."""
