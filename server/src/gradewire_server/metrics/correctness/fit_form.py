"""The stored format of a `correctness` fit: one JSON object, which is checked before use.

P(right) = map(base + the sum of all trees + the sum of all linear terms), in log-odds. A split sends the share
s = clip((x - threshold) / width + 1/2, 0, 1) of an item to the right; with width 0, s is 1 above the threshold and 0
otherwise. An absent feature goes to the side that `missing_left` names. The value of a tree is the mean of its leaves,
weighted by the product of the shares on the path to each (soft splits: Irsoy, Yildiz and Alpaydin 2012).
"""

from bisect import bisect_right
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Final, Literal, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray
from pydantic import BaseModel, ConfigDict, Field, GetPydanticSchema, field_validator, model_validator
from pydantic_core import core_schema

from gradewire_server.metrics.correctness.features import INPUT_KIND

_MAX_NODES: Final = 200_000
_MAX_TREES: Final = 5_000
_MAX_FEATURES: Final = 256
_MAX_POINTS: Final = 4_096
_MAX_ROWS: Final = 4_096
_MIN_WIDTH: Final = 1e-9
_LEAST_RAMP: Final = 1e-3
_ROUNDING: Final = 1e-9

Number = Annotated[float, Field(allow_inf_nan=False)]
LogOdds = Annotated[float, Field(ge=-1e6, le=1e6, allow_inf_nan=False)]  # the sum over all trees stays finite
Value = Annotated[float, Field(ge=-1e9, le=1e9, allow_inf_nan=False)]
Scale = Annotated[float, Field(ge=1e-6, le=1e9, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Index = Annotated[int, Field(ge=-1, le=_MAX_NODES)]
Floats = NDArray[np.float64]


def _array_schema(item: Any, most: int, *, least: int = 1, dtype: DTypeLike = np.float64) -> Any:
    items = Annotated[list[item], Field(min_length=least, max_length=most)]

    def read(found: list[Any]) -> NDArray[Any]:
        return np.array(found, dtype=dtype)

    return GetPydanticSchema(
        lambda _, handler: core_schema.no_info_after_validator_function(read, handler.generate_schema(items))
    )


_NODE_INDICES: Final = _array_schema(Index, _MAX_NODES, dtype=np.intp)
_POINTS: Final = _array_schema(Share, _MAX_POINTS)
_PER_FEATURE: Final = _array_schema(Value, _MAX_FEATURES, least=0)


class _Form(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    fields_of_equal_length: ClassVar[tuple[str, ...]] = ()

    @model_validator(mode="after")
    def _same_length(self) -> Self:
        if len({len(getattr(self, name)) for name in self.fields_of_equal_length}) > 1:
            raise ValueError(f"{', '.join(self.fields_of_equal_length)} differ in length")
        return self


class FeatureForm(_Form):
    """A feature of the fit; width 0 means hard splits. Servers use the metric's own `rules_out` and `doubts`."""

    name: str
    monotone: Literal[-1, 0, 1]
    rules_out: bool = False
    doubts: bool = False
    width: Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)]

    @field_validator("width")
    @classmethod
    def _has_a_slope(cls, width: float) -> float:
        if 0 < width < _MIN_WIDTH:
            raise ValueError(f"must be 0 or at least {_MIN_WIDTH:g}, because a ramp needs a finite slope")
        return width


class TreesForm(_Form):
    """The nodes of all trees; a child comes after its parent.

    Attributes:
        roots: intp[trees], the indices of the root nodes.
        feature: intp[nodes], the index of the feature that splits the node; -1 for a leaf.
        threshold: float64[nodes], the feature's value at which the node splits.
        missing_left: bool[nodes], True if items without the feature go left.
        left: intp[nodes], the index of the left child; -1 for a leaf. `right` is the same for the right child.
        value: float64[nodes], the log-odds that a leaf adds; unused in nodes that split.
    """

    fields_of_equal_length = ("feature", "threshold", "missing_left", "left", "right", "value")

    roots: Annotated[NDArray[np.intp], _array_schema(Index, _MAX_TREES, dtype=np.intp)]
    feature: Annotated[NDArray[np.intp], _NODE_INDICES]
    threshold: Annotated[Floats, _array_schema(Number, _MAX_NODES)]
    missing_left: Annotated[NDArray[np.bool_], _array_schema(bool, _MAX_NODES, dtype=np.bool_)]
    left: Annotated[NDArray[np.intp], _NODE_INDICES]
    right: Annotated[NDArray[np.intp], _NODE_INDICES]
    value: Annotated[Floats, _array_schema(LogOdds, _MAX_NODES)]


class MapForm(_Form):
    """A map from log-odds to a probability, linear between the points and constant beyond the outermost points."""

    fields_of_equal_length = ("log_odds", "probability")

    log_odds: Annotated[Floats, _array_schema(LogOdds, _MAX_POINTS)]
    probability: Annotated[Floats, _POINTS]

    @model_validator(mode="after")
    def _ascending(self) -> Self:
        if np.any(np.diff(self.log_odds) <= 0):
            raise ValueError("log_odds are not strictly ascending")
        if np.any(np.diff(self.probability) < 0):
            raise ValueError("probability must not fall, or a better answer would get a lower probability")
        return self

    def p_right(self, log_odds: float) -> float:
        """Return P(right), 0 to 1."""
        return float(np.interp(log_odds, self.log_odds, self.probability))


class RanksForm(_Form):
    """Order statistics of one class's probabilities in `count` held-out rows.

    `ranks` ascend strictly, from 1 to at most `count`. Right answers are ranked upwards, wrong answers downwards.
    """

    fields_of_equal_length = ("ranks", "values")

    count: Annotated[int, Field(ge=1)]
    ranks: Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=1, max_length=_MAX_POINTS)]
    values: Annotated[list[Share], Field(min_length=1, max_length=_MAX_POINTS)]

    @model_validator(mode="after")
    def _ascending(self) -> Self:
        ranks = self.ranks
        if ranks[-1] > self.count or any(left >= right for left, right in pairwise(ranks)):
            raise ValueError("ranks must be strictly ascending and not exceed count")
        return self

    def edge(self, beyond: float) -> float | None:
        """Return the value beyond which at most the share `beyond` of rows lies, or None if there are too few rows.

        For n held-out rows and an exchangeable new row, the new row lies beyond the k-th value with a probability of at
        most k / (n + 1).
        """
        row = bisect_right(self.ranks, int(beyond * (self.count + 1) + _ROUNDING)) - 1
        return self.values[row] if row >= 0 else None


class ConformalForm(_Form):
    """Probabilities of right and wrong answers; `mistaken` has the certainties, max(P, 1 - P), of wrong verdicts."""

    right: RanksForm
    wrong: RanksForm
    mistaken: RanksForm | None = None

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        right, wrong = self.right.values, self.wrong.values
        mistaken = [] if self.mistaken is None else self.mistaken.values
        if sorted(right) != right or any(sorted(each, reverse=True) != each for each in (wrong, mistaken)):
            raise ValueError("values of right must not fall with rank, and values of wrong and mistaken must not rise")
        return self


class LinearForm(_Form):
    """Log-odds per unit of each feature, with a range for each feature's values.

    A value is clipped to the range from `low` to `high`; `missing` replaces a missing value.
    """

    fields_of_equal_length = ("weight", "low", "high", "missing")

    weight: Annotated[Floats, _array_schema(LogOdds, _MAX_FEATURES, least=0)]
    low: Annotated[Floats, _PER_FEATURE]
    high: Annotated[Floats, _PER_FEATURE]
    missing: Annotated[Floats, _PER_FEATURE]

    @model_validator(mode="after")
    def _low_is_low(self) -> Self:
        if np.any(self.low > self.high):
            raise ValueError("low is above high")
        return self

    def sum_of(self, features: Floats) -> float:
        """Return the log-odds for float64[used features], with NaN for features that do not apply."""
        known = np.minimum(np.maximum(features, self.low), self.high)  # np.clip checks its arguments for longer
        np.copyto(known, self.missing, where=np.isnan(features))
        return float(self.weight @ known)


class DistanceBandForm(_Form):
    """The map and bands for items far from the fitted rows."""

    map: MapForm
    conformal: ConformalForm


class DistanceForm(_Form):
    """The rows and limits that determine an item's distance from the `nearest` fitted rows, in units of `scale`.

    Attributes:
        shape: The names of the numbers that describe an item's input kind.
        near: Maximum distance of a near item.
        far: Minimum distance of a far item.
    """

    shape: Annotated[list[str], Field(min_length=1, max_length=_MAX_FEATURES)]
    scale: Annotated[Floats, _array_schema(Scale, _MAX_FEATURES)]
    rows: Annotated[list[Annotated[list[Value], Field(max_length=_MAX_FEATURES)]], Field(max_length=_MAX_ROWS)]
    nearest: Annotated[int, Field(ge=1)]
    near: Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)]
    far: Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)]

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if len(set(self.shape)) < len(self.shape):
            raise ValueError("a name occurs twice in shape")
        if len(self.scale) != len(self.shape) or any(len(row) != len(self.shape) for row in self.rows):
            raise ValueError("the length of scale or a row differs from the length of shape")
        if self.nearest > len(self.rows):
            raise ValueError("nearest exceeds the number of rows")
        if self.far - self.near < _LEAST_RAMP:
            raise ValueError(f"far must exceed near by at least {_LEAST_RAMP:g}")
        if unknown := set(self.shape).difference(INPUT_KIND):
            raise ValueError(f"this version of the metric has no number named {unknown.pop()!r}")
        return self

    @cached_property
    def matrix(self) -> Floats:
        """The rows, float64[len(shape), rows]: sums over the first axis are several times as fast."""
        return np.ascontiguousarray(np.array(self.rows).T)

    @cached_property
    def columns(self) -> NDArray[np.intp]:
        """The index in INPUT_KIND of each name in `shape`."""
        return np.array([INPUT_KIND.index(name) for name in self.shape], dtype=np.intp)

    def distance(self, input_kind: Floats) -> float:
        """Return the mean Euclidean distance to the nearest rows; `input_kind` is finite float64[len(INPUT_KIND)]."""
        apart = self.matrix - (input_kind[self.columns] / self.scale)[:, None]
        apart *= apart
        squares = np.add.reduce(apart, axis=0)
        squares.partition(self.nearest - 1)
        return float(np.add.reduce(np.sqrt(squares[: self.nearest])) / self.nearest)

    def far_share(self, distance: float) -> float:
        """Return 0 for a near distance, 1 for a far distance, and a linearly interpolated value in between."""
        return min(1.0, max(0.0, (distance - self.near) / (self.far - self.near)))


class VersionedForm(BaseModel):
    """A stored fit. Additional fields in the file do not affect scores."""

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")

    format: Literal[1]
    metric_version: int


class FitForm(VersionedForm):
    """A stored fit of `correctness`. `map` and `conformal` are for items near the fitted rows."""

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
    def _far_has_distance(self) -> Self:
        if self.far is not None and self.distance is None:
            raise ValueError("far needs distance, because otherwise no item is far")
        return self
