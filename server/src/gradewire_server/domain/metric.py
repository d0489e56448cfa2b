"""The metric interface, with parameters, fitted thresholds and model properties."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Literal, Protocol, Self, TypeVar

from gradewire_proto.choices import Corpus
from gradewire_proto.metric_parameters import PARAMETERS, ParameterInfo
from gradewire_server.domain.items import Item, ReferenceEntry
from gradewire_server.domain.needs import Preparation, Program


@dataclass(frozen=True, slots=True)
class Calibration:
    """A metric's threshold, or a fit for `correctness` or `auto`, from the encoder's description.

    Attributes:
        parameters: The metric parameters used for the fit, sorted, in the format of metric identifiers.
        threshold: The lowest score that counts as right, or None for `correctness` and `auto`.
        sentence_weight: The sentence weight used for the fit, or None for metrics other than `smile`.
        described: One line for users about the calibration's origin and data.
        fit: The fit in JSON for `correctness` or `auto`, or "" for other metrics.
        origin: "user" if `gradewire calibrate` made the calibration.
    """

    metric: str
    metric_version: int
    parameters: tuple[tuple[str, str], ...]
    threshold: float | None
    sentence_weight: float | None = None
    described: str = ""
    fit: str = ""
    origin: Literal["catalog", "user"] = "catalog"

    def holds_for(self, parameters: Any) -> bool:
        """Return True if the calibration was fitted with these metric parameters (a dataclass)."""
        return all(_text(getattr(parameters, name, None)) == value for name, value in self.parameters)


def calibration_for(found: Sequence[Calibration], parameters: Any) -> Calibration | None:
    """Return the first calibration that was fitted with these metric parameters, or None."""
    return next((each for each in found if each.holds_for(parameters)), None)


def graders_of(fits: Sequence[Calibration]) -> tuple[str, ...]:
    """Return the names of the graders of the user's fits or, if there are none, of all fits; sorted."""
    own = [each for each in fits if each.origin == "user"]
    return tuple(sorted({grader for each in own or fits for name, grader in each.parameters if name == "grader"}))


def preferred_grader(names: Sequence[str], default: str) -> str:
    """Return the `default` or its variant (NAME-CLASS) if it is in `names`, otherwise the first name, or ""."""
    usual = (name for name in names if name == default or (default and name.startswith(f"{default}-")))
    return next(usual, next(iter(names), ""))


def _text(value: Any) -> str:
    # Return the value in the format of metric identifiers.
    return str(value).lower() if isinstance(value, bool) else str(value)


class ParameterError(ValueError):
    """An invalid parameter value, which becomes the failure INVALID_PARAMETER for all items."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message


@dataclass(frozen=True, slots=True)
class Parameters:
    """The base class for metric parameters.

    A subclass is a frozen dataclass with the same fields as the metric's message in types.proto. Enums are from
    gradewire_proto.choices. A field may override a property of this class.
    """

    @property
    def model(self) -> str:
        """The name, without a digest, of the encoder or judge; "" for a metric that needs no model."""
        return ""

    @property
    def reads_prepared(self) -> bool:
        """True if the score depends on the reference set. The metric identifier then contains the set's name."""
        return self.corpus is Corpus.PREPARED

    @property
    def corpus(self) -> Corpus:
        """The corpus from which the metric's weights are computed."""
        return Corpus.NONE

    @property
    def prompt_name(self) -> str:
        """The prompt file's NAME/VERSION, or "" without a judge."""
        return ""

    @property
    def prompt_digest(self) -> str:
        """The prompt file's SHA-256, 64 hex digits, or "" without a judge."""
        return ""

    @property
    def calibration(self) -> str:
        """One line for users about the calibration in use, or "" without a calibration."""
        return ""

    @classmethod
    def preset_values(cls, preset: str | None) -> Mapping[str, Any]:
        """Return the preset's values by field name, for fields that the request does not set."""
        del preset
        return {}

    def resolved(self, metadata: "ModelMetadata") -> Self:
        """Return a copy with the model's defaults, or raise ParameterError if a value is invalid for this model."""
        del metadata
        return self

    @classmethod
    def usual_graders(cls, metadata: "ModelMetadata", fit: str = "") -> tuple[str, ...]:
        """Return the names of the graders that a request that names none can have, or () for no grader.

        `fit` is the fit that the request requires, or "".
        """
        del metadata, fit
        return ()

    def asks_no_judge(self, metadata: "ModelMetadata") -> bool:
        """Return True if the metric needs no judge with these parameters and this model."""
        del metadata
        return False


P = TypeVar("P", bound=Parameters)


def parameter_info(metric: str, name: str) -> ParameterInfo:
    """Return the parameter's documentation from types.proto."""
    return next(each for each in PARAMETERS[metric] if each.name == name)


@dataclass(frozen=True, slots=True)
class MetricInfo:
    """A metric's description for Models.List and the documentation."""

    name: str
    version: int
    description: str
    citation: str
    minimum: float = 0.0
    maximum: float = 1.0
    higher_is_better: bool = True
    needs_model: bool = False
    needs_synonyms: bool = False
    needs_judge: bool = False  # the parameter `model` names a judge
    judge_parameter: str = ""  # the parameter that names a judge, in addition to an encoder
    needs_grader: bool = False  # the parameter `model` names a grader
    grader_parameter: str = ""  # the parameter that names an optional grader, in addition to an encoder
    built_on: tuple["MetricInfo", ...] = ()  # metrics whose programs and fits this metric uses
    has_verdict: bool = True  # False if only a threshold gives a verdict, or nothing
    grades_abstentions: bool = True  # False if answers to questions without an answer are INVALID_INPUT
    advice: str = ""  # a comparison of the metric with cheaper metrics

    @property
    def parameters(self) -> tuple[ParameterInfo, ...]:
        """The parameters' documentation from types.proto."""
        return PARAMETERS.get(self.name, ())

    @property
    def asks_judge(self) -> bool:
        """True if the metric may ask a judge."""
        return self.needs_judge or bool(self.judge_parameter)


@dataclass(frozen=True, slots=True)
class TokenLayer:
    """A model's hidden layer that provides token vectors.

    Attributes:
        number: The layer's number, starting at 1.
        baseline: BERTScore's precision, recall and F1 for unrelated texts, which rescaling needs. None if not measured.
    """

    number: int
    baseline: tuple[float, float, float] | None = None


@dataclass(frozen=True, slots=True)
class ModelMetadata:
    """The model properties that metrics may use.

    Attributes:
        calibrations: The calibrations for all metrics. The first match counts.
        outdated: (metric, version) for each calibration that was fitted for another version of its metric.
        unreadable: (metric, message) for each calibration that cannot be read. The message contains advice.
        token_layers: The layers that provide token vectors, in ascending order.
        bertscore_layer: BERTScore's default layer, or 0 without a default.
        digest: The model's digest, 64 hex digits.
        judge: NAME@DIGEST of the judge that the metric also uses, or "".
        grader: NAME@DIGEST of the grader that the metric also uses, or "".
        temperature: The divisor that calibrates a grader's logits.
        rough_cosine_error: The maximum error of a cosine between an approximate (`EmbedRoughly`) and an exact vector,
            or None without approximate vectors.
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
        """Return a copy with only the calibrations for `metric` and for the metrics in `metric.built_on`."""
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
    """A scoring rule without I/O. The registry finds metrics in the files below metrics/."""

    @property
    def info(self) -> MetricInfo:
        """The metric's description."""

    @property
    def parameters_type(self) -> type[P]:
        """The parameters' dataclass. The constructor raises ParameterError if a value is invalid."""

    def score(self, item: Item, /, parameters: P, metadata: ModelMetadata) -> Program:
        """Return a program that validates and grades the item."""

    def prepare(self, entry: ReferenceEntry, /, parameters: P) -> Preparation:
        """Return a program that caches everything `score` will need for these references."""
