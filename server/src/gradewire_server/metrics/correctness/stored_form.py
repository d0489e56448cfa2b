"""The stored form of a fit of `correctness`: plain JSON, see docs/reference/correctness.md."""

from itertools import pairwise
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

_MAX_NODES = 200_000
_MAX_TREES = 5_000
_MAX_FEATURES = 256
_MAX_POINTS = 4_096
_MAX_ROWS = 4_096
_MIN_WIDTH = 1e-9
_LEAST_RAMP = 1e-3

Number = Annotated[float, Field(allow_inf_nan=False)]
LogOdds = Annotated[float, Field(ge=-1e6, le=1e6, allow_inf_nan=False)]  # sums of all trees stay finite
Value = Annotated[float, Field(ge=-1e9, le=1e9, allow_inf_nan=False)]
Scale = Annotated[float, Field(ge=1e-6, le=1e9, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Index = Annotated[int, Field(ge=-1, le=_MAX_NODES)]
_Nodes = Field(min_length=1, max_length=_MAX_NODES)


class _Form(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")


class FeatureForm(_Form):
    """A feature.

    Attributes:
        name: As in the metric.
        monotone: 1: more of it never lowers the probability; -1: never raises it; 0: either.
        width: Of the ramps at its splits; 0: hard splits.
        rules_out: Told for who evaluates a fit elsewhere; a server goes by the metric's own rules.
    """

    name: str
    monotone: Literal[-1, 0, 1]
    rules_out: bool = False
    width: Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)]

    @field_validator("width")
    @classmethod
    def _has_a_slope(cls, width: float) -> float:
        if 0 < width < _MIN_WIDTH:
            raise ValueError(f"must be 0, or {_MIN_WIDTH:g} and more: a ramp needs a finite slope")
        return width


class TreesForm(_Form):
    """All nodes of all trees, as in `Nodes`."""

    roots: Annotated[list[Index], Field(min_length=1, max_length=_MAX_TREES)]
    feature: Annotated[list[Index], _Nodes]
    threshold: Annotated[list[Number], _Nodes]
    missing_left: Annotated[list[bool], _Nodes]
    left: Annotated[list[Index], _Nodes]
    right: Annotated[list[Index], _Nodes]
    value: Annotated[list[LogOdds], _Nodes]

    @model_validator(mode="after")
    def _same_length(self) -> Self:
        columns = (self.threshold, self.missing_left, self.left, self.right, self.value)
        if any(len(column) != len(self.feature) for column in columns):
            raise ValueError("the columns of nodes differ in length")
        return self


class MapForm(_Form):
    """Log-odds to probability, linear between the points and constant outside."""

    log_odds: Annotated[list[LogOdds], Field(min_length=1, max_length=_MAX_POINTS)]
    probability: Annotated[list[Share], Field(min_length=1, max_length=_MAX_POINTS)]

    @model_validator(mode="after")
    def _ascending(self) -> Self:
        points, values = self.log_odds, self.probability
        if len(points) != len(values):
            raise ValueError("log_odds and probability differ in length")
        if any(left >= right for left, right in pairwise(points)):
            raise ValueError("log_odds are not strictly ascending")
        if any(left > right for left, right in pairwise(values)):
            raise ValueError("probability falls: a better answer would get a lower one")
        return self


class RanksForm(_Form):
    """Some order statistics of held-out probabilities of one class.

    Attributes:
        count: Rows of the class.
        ranks: Strictly ascending, 1 to count; of right answers counted from the lowest probability up, of wrong ones
            from the highest down.
        values: The probabilities at these ranks.
    """

    count: Annotated[int, Field(ge=1)]
    ranks: Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=1, max_length=_MAX_POINTS)]
    values: Annotated[list[Share], Field(min_length=1, max_length=_MAX_POINTS)]

    @model_validator(mode="after")
    def _ascending(self) -> Self:
        ranks = self.ranks
        if len(ranks) != len(self.values):
            raise ValueError("ranks and values differ in length")
        if ranks[-1] > self.count or any(left >= right for left, right in pairwise(ranks)):
            raise ValueError("ranks are not strictly ascending up to count")
        return self


class ConformalForm(_Form):
    """What the band of uncertain probabilities follows from.

    Attributes:
        right: Probabilities of right answers.
        wrong: Of wrong ones.
        mistaken: Certainty, max(P, 1 - P), of wrong verdicts, from the highest down.
    """

    right: RanksForm
    wrong: RanksForm
    mistaken: RanksForm | None = None

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        right, wrong = self.right.values, self.wrong.values
        mistaken = [] if self.mistaken is None else self.mistaken.values
        if sorted(right) != right or any(sorted(each, reverse=True) != each for each in (wrong, mistaken)):
            raise ValueError("values of right must not fall with their rank, those of wrong and mistaken must not rise")
        return self


class LinearForm(_Form):
    """Log-odds that are linear in the features, one entry each, in the order of `features`.

    Attributes:
        weight: Log-odds per unit.
        low: Values below it count as it.
        high: Values above it count as it.
        missing: What an absent feature counts as.
    """

    weight: Annotated[list[LogOdds], Field(max_length=_MAX_FEATURES)]
    low: Annotated[list[Value], Field(max_length=_MAX_FEATURES)]
    high: Annotated[list[Value], Field(max_length=_MAX_FEATURES)]
    missing: Annotated[list[Value], Field(max_length=_MAX_FEATURES)]

    @model_validator(mode="after")
    def _same_length(self) -> Self:
        if any(len(each) != len(self.weight) for each in (self.low, self.high, self.missing)):
            raise ValueError("its lists differ in length")
        if any(low > high for low, high in zip(self.low, self.high, strict=True)):
            raise ValueError("low is above high")
        return self


class DistanceBandForm(_Form):
    """What log-odds mean for items far from the fitted rows."""

    map: MapForm
    conformal: ConformalForm


class DistanceForm(_Form):
    """How far an item is from the fitted rows.

    Attributes:
        shape: Names of the numbers that say what kind of item it is.
        scale: Unit of each.
        rows: Some of the fitted rows, in these units.
        nearest: How many of them count, the closest ones.
        near: Distance up to which an item is near.
        far: Distance from which it is far.
    """

    shape: Annotated[list[str], Field(min_length=1, max_length=_MAX_FEATURES)]
    scale: Annotated[list[Scale], Field(min_length=1, max_length=_MAX_FEATURES)]
    rows: Annotated[list[Annotated[list[Value], Field(max_length=_MAX_FEATURES)]], Field(max_length=_MAX_ROWS)]
    nearest: Annotated[int, Field(ge=1)]
    near: Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)]
    far: Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)]

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if len(set(self.shape)) < len(self.shape):
            raise ValueError("a name stands in shape twice")
        if len(self.scale) != len(self.shape) or any(len(row) != len(self.shape) for row in self.rows):
            raise ValueError("scale or a row has not as many numbers as shape")
        if self.nearest > len(self.rows):
            raise ValueError("nearest is more than there are rows")
        if self.far - self.near < _LEAST_RAMP:
            raise ValueError(f"far must be {_LEAST_RAMP:g} above near, or more")
        return self


class FitForm(_Form):
    """A whole fit; what else stands in it is its provenance, which no score is made of."""

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")

    format: Literal[1]
    metric_version: int
    model: str
    model_digest: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    grader_digest: Annotated[str, Field(pattern="^([0-9a-f]{64})?$")] = ""
    features: Annotated[list[FeatureForm], Field(min_length=1, max_length=_MAX_FEATURES)]
    base: LogOdds
    trees: TreesForm
    map: MapForm
    conformal: ConformalForm
    linear: LinearForm | None = None
    distance: DistanceForm | None = None
    far: DistanceBandForm | None = None

    @model_validator(mode="after")
    def _far_of_something(self) -> Self:
        if self.far is not None and self.distance is None:
            raise ValueError("far needs a distance: without one no item is far")
        return self
