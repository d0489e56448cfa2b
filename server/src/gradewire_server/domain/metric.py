"""What the rest of the server knows of a metric."""

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from gradewire_server.domain.item import Item, ReferenceEntry
from gradewire_server.domain.needs import Preparation, Program


class ParameterError(ValueError):
    """A parameter value is out of range: the metric fails for all items with INVALID_PARAMETER.

    Attributes:
        field: Name of the parameter.
    """

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field


class Parameters(Protocol):
    """A frozen dataclass with the resolved values (no unset ones) of a metric's message in types.proto.

    Fields are named as there. Enums are StrEnums whose values are the lower-case tail of the wire's names
    (SMILE_PRESET_FAST: "fast"). `model` is the plain model name ("" for metrics without one).
    """

    @property
    def model(self) -> str:
        """Encoder or judge, "" for none."""


P = TypeVar("P", bound=Parameters)


@dataclass(frozen=True, slots=True)
class ParameterInfo:
    """One parameter, for Models.List and the documentation."""

    name: str
    description: str
    default_value: str
    allowed: str


@dataclass(frozen=True, slots=True)
class MetricInfo:
    """A metric's public face, for Models.List and the documentation."""

    name: str
    version: int
    description: str
    minimum: float
    maximum: float
    higher_is_better: bool
    citation: str
    parameters: tuple[ParameterInfo, ...]
    needs_model: bool


@dataclass(frozen=True, slots=True)
class Calibration:
    """Threshold and weight of SMILE fitted for one encoder (catalog); without it results carry UNCALIBRATED."""

    threshold: float
    sentence_weight: float


class Metric(Protocol, Generic[P]):
    """A pure scoring rule: no I/O, no clock, no model. One file in metrics/, one line in its registry."""

    @property
    def info(self) -> MetricInfo:
        """Name, version, range, parameters, citation."""

    @property
    def parameters_type(self) -> type[P]:
        """Dataclass of its parameters; constructing it validates and raises ParameterError."""

    def score(self, item: Item, parameters: P, calibration: Calibration | None) -> Program:
        """A program that grades the item; it checks the item itself (blank references, blank prediction)."""

    def prepare(self, entry: ReferenceEntry, parameters: P) -> Preparation:
        """A program that asks for all that `score` will need of these references, so that the cache holds it."""
