"""A fit of the metric: from features to a probability, and to the band in which its verdict is not to be trusted."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from gradewire_server.metrics.correctness.features import INPUT_KIND, RULED_OUT, Feature
from gradewire_server.metrics.correctness.stored_form import (
    ConformalForm,
    DistanceForm,
    FitForm,
    MapForm,
    TreesForm,
)
from gradewire_server.metrics.correctness.trees import Nodes, SoftTrees, TreeError

VERDICT: Final = 0.5
"""Probability from which an answer counts as right."""
_MISTAKEN_FROM: Final = 0.5
_MISTAKEN_SLOPE: Final = 1.25
"""At confidence c the band holds the share (c - 1/2) 5/4 of wrong verdicts: half of them at 0.9."""

ID_CHARACTERS: Final = 12
MAX_TEXT_CHARACTERS: Final = 8 << 20
_INT: Final = np.intp


@dataclass(frozen=True, slots=True, eq=False)
class FittedRows:
    """Some of the fitted rows, by what kind of item they are.

    Attributes:
        columns: intp[used], which numbers of INPUT_KIND are read.
        scale: float64[used], above 0: their units.
        rows: float64[rows, used], in these units.
        nearest: How many of the closest rows count, at most all.
        near: Distance up to which an item is near.
        far: Distance from which it is far, the larger one.
    """

    columns: NDArray[np.intp]
    scale: NDArray[np.float64]
    rows: NDArray[np.float64]
    nearest: int
    near: float
    far: float

    def distance(self, input_kind: NDArray[np.float64]) -> float:
        """Return the mean Euclidean distance of float64[len(INPUT_KIND)], finite, to the closest rows; 0 or more."""
        apart = self.rows - input_kind[self.columns] / self.scale
        squares = np.add.reduce(apart * apart, axis=1)
        return float(np.sqrt(np.partition(squares, self.nearest - 1)[: self.nearest]).mean())

    def far_share(self, distance: float) -> float:
        """0 for what is near, 1 for what is far, a straight line between them."""
        return min(1.0, max(0.0, (distance - self.near) / (self.far - self.near)))


@dataclass(frozen=True, slots=True)
class Band:
    """Probabilities, from `lower` to `upper` and both included, at which a verdict is not trusted."""

    lower: float
    upper: float

    def holds(self, probability: float) -> bool:
        """Whether a probability lies inside."""
        return self.lower <= probability <= self.upper

    def towards(self, other: "Band", share: float) -> "Band":
        """This band, wider by that share of what the other one is wider at either end."""
        return Band(
            lower=self.lower - share * max(0.0, self.lower - other.lower),
            upper=self.upper + share * max(0.0, other.upper - self.upper),
        )


EVERYTHING: Final = Band(0.0, 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class DistanceBand:
    """The meaning of log-odds for items near the fitted rows, or far from them.

    Attributes:
        log_odds: float64[points], strictly ascending.
        probability: float64[points], never falling.
    """

    log_odds: NDArray[np.float64]
    probability: NDArray[np.float64]
    _held_out: ConformalForm

    @classmethod
    def of(cls, points: MapForm, conformal: ConformalForm) -> "DistanceBand":
        """Return the band as it is stored."""
        return cls(np.array(points.log_odds), np.array(points.probability), conformal)

    def p_right(self, log_odds: float) -> float:
        """P(right), 0 to 1."""
        return float(np.interp(log_odds, self.log_odds, self.probability))

    @lru_cache(maxsize=64)  # noqa: B019 - a process has a handful of fits, which it keeps
    def band(self, confidence: float) -> Band:
        """Where the verdict is not trusted at `confidence`, above 0 and below 1.

        A verdict is trusted where the other one is ruled out and it is not: "wrong" below what nearly all right answers
        reach, "right" above what nearly all wrong ones stay under. The band holds its share of the wrong verdicts as
        well, and always the probability of the verdict's edge, 1/2. Where the rows are too few for such a confidence,
        the band is everything on that side.
        """
        held_out = self._held_out
        lower, upper = held_out.right.edge(1 - confidence), held_out.wrong.edge(1 - confidence)
        held, certain = _MISTAKEN_SLOPE * (confidence - _MISTAKEN_FROM), VERDICT
        if held_out.mistaken is not None and held > 0:
            edge = held_out.mistaken.edge(1 - held)
            certain = 1.0 if edge is None else edge
        return Band(
            lower=min(0.0 if lower is None else lower, 1 - certain, VERDICT),
            upper=max(1.0 if upper is None else upper, certain, VERDICT),
        )


class FitError(ValueError):
    """A stored fit cannot be used; the message says why."""


@dataclass(frozen=True, slots=True, eq=False)
class _Linear:
    """What is linear in the features; arrays are float64[used features]."""

    weight: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    missing: NDArray[np.float64]

    def value(self, features: NDArray[np.float64]) -> float:
        """Log-odds for float64[used features]; NaN is a feature that does not apply."""
        known = np.where(np.isnan(features), self.missing, np.clip(features, self.low, self.high))
        return float(self.weight @ known)


@dataclass(frozen=True, slots=True)
class ItemPosition:
    """Where an item lies.

    Attributes:
        distance: From the fitted rows, 0 or more.
        far: Share of it that is far, 0 to 1.
    """

    distance: float
    far: float


@dataclass(frozen=True, slots=True, eq=False)
class CorrectnessFit:
    """A fit for one model.

    Attributes:
        identity: What `fit_id` makes of the stored text.
        model_digest: 64 hex digits; whose vectors it was fitted on.
        grader_digest: 64 hex digits; whose logits are a feature, empty for none.
        columns: intp[used], which of the metric's features it reads.
        rules: intp[rules], which of the metric's features rule an answer out from 1 on.
        base: Log-odds before any tree.
        trees: Over the features that it reads.
        near: For items near the fitted rows.
        far: For items far from them; None: as near them, and no verdict is trusted.
        rows: The fitted rows, by kind; None: all items are near.
    """

    identity: str
    model_digest: str
    grader_digest: str
    columns: NDArray[np.intp]
    rules: NDArray[np.intp]
    base: float
    trees: SoftTrees
    near: DistanceBand
    far: DistanceBand | None
    rows: FittedRows | None
    _linear: _Linear | None

    def raw(self, features: NDArray[np.float64]) -> float:
        """Log-odds before the map, for float64[features of the metric]; NaN is a feature that does not apply."""
        used = features[self.columns]
        linear = 0.0 if self._linear is None else self._linear.value(used)
        return self.base + self.trees.value(used) + linear

    def position_of(self, input_kind: NDArray[np.float64]) -> ItemPosition | None:
        """Return where an item of this kind, float64[len(INPUT_KIND)], lies; None where the fit has no rows."""
        if self.rows is None:
            return None
        distance = self.rows.distance(input_kind)
        return ItemPosition(distance, self.rows.far_share(distance))

    def __call__(self, features: NDArray[np.float64], position: ItemPosition | None = None) -> float:
        """P(right), 0 to 1, of the metric's features, at a position; None: near.

        At most RULED_OUT where a rule calls the answer wrong.
        """
        learnt = self._learnt(features, position)
        return min(learnt, RULED_OUT) if self._ruled_out(features) else learnt

    def overruled(self, features: NDArray[np.float64], position: ItemPosition | None = None) -> bool:
        """Whether a rule calls an answer wrong that the rest calls right: such a verdict is never certain."""
        return self._ruled_out(features) and self._learnt(features, position) >= VERDICT

    def _learnt(self, features: NDArray[np.float64], position: ItemPosition | None) -> float:
        raw = self.raw(features)
        near = self.near.p_right(raw)
        if position is None or self.far is None:
            return near
        return (1 - position.far) * near + position.far * self.far.p_right(raw)

    def _ruled_out(self, features: NDArray[np.float64]) -> bool:
        return bool((features[self.rules] >= 1).any())

    def band(self, confidence: float, position: ItemPosition | None = None) -> Band:
        """Return where the verdict is not trusted at `confidence`, above 0 and below 1; wider for farther positions."""
        near = self.near.band(confidence)
        if position is None:
            return near
        return near.towards(EVERYTHING if self.far is None else self.far.band(confidence), position.far)


def fit_id(text: str) -> str:
    """The name of a fit in results: 12 hex digits of the SHA-256 of its stored text."""
    return hashlib.sha256(text.encode()).hexdigest()[:ID_CHARACTERS]


def read_fit(text: str, known: Sequence[Feature], *, version: int) -> CorrectnessFit:
    """Reads a stored fit and checks all that its use relies on.

    Args:
        text: JSON, see docs/reference/correctness.md.
        known: The metric's features in their order.
        version: Of the metric.

    Raises:
        FitError: It is not of the form, is for another version of the metric, reads a feature that this version does
            not have, or is not monotone, or steeper than may be, where the metric promises it.
    """
    if len(text) > MAX_TEXT_CHARACTERS:
        raise FitError(f"has {len(text)} characters, at most {MAX_TEXT_CHARACTERS} are read")
    try:
        form = FitForm.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise FitError(f"{where or 'text'}: {first['msg']}") from None
    if form.metric_version != version:
        raise FitError(f"is for version {form.metric_version} of the metric, this server has {version}")
    columns = _columns(form, known)
    try:
        trees = SoftTrees.of(
            _nodes(form.trees),
            np.array([feature.width for feature in form.features]),
            np.array([feature.monotone for feature in form.features], dtype=np.int8),
        )
    except TreeError as error:
        raise FitError(f"trees: {error}") from None
    return CorrectnessFit(
        identity=fit_id(text),
        model_digest=form.model_digest,
        grader_digest=form.grader_digest,
        columns=columns,
        rules=np.array([position for position, feature in enumerate(known) if feature.rules_out], dtype=_INT),
        base=form.base,
        trees=trees,
        near=DistanceBand.of(form.map, form.conformal),
        far=None if form.far is None else DistanceBand.of(form.far.map, form.far.conformal),
        rows=_neighbourhood(form.distance),
        _linear=_linear(form),
    )


@lru_cache(maxsize=8)
def cached_fit(text: str, known: tuple[Feature, ...], version: int) -> CorrectnessFit | str:
    """As `read_fit`, once per text and process; the reason as a text where the fit cannot be used."""
    try:
        return read_fit(text, known, version=version)
    except FitError as error:
        return str(error)


def _columns(form: FitForm, known: Sequence[Feature]) -> NDArray[np.intp]:
    positions = {rule.name: position for position, rule in enumerate(known)}
    names = [feature.name for feature in form.features]
    if len(set(names)) < len(names):
        raise FitError("features: a name stands there twice")
    for feature in form.features:
        if feature.name not in positions:
            raise FitError(f"features: this version of the metric has none named {feature.name!r}")
        rule = known[positions[feature.name]]
        if rule.monotone and feature.monotone != rule.monotone:
            raise FitError(f"features: {feature.name} must be monotone {rule.monotone:+d}")
        if feature.width < rule.width:
            raise FitError(f"features: {feature.name} must have ramps {rule.width:g} wide or wider")
    return np.array([positions[name] for name in names], dtype=_INT)


def _nodes(form: TreesForm) -> Nodes:
    feature = np.array(form.feature, dtype=_INT)
    value = np.array(form.value)
    return Nodes(
        roots=np.array(form.roots, dtype=_INT),
        feature=feature,
        threshold=np.array(form.threshold),
        missing_left=np.array(form.missing_left, dtype=np.bool_),
        left=np.array(form.left, dtype=_INT),
        right=np.array(form.right, dtype=_INT),
        value=np.where(feature < 0, value, 0.0),
    )


def _linear(form: FitForm) -> _Linear | None:
    if form.linear is None:
        return None
    if len(form.linear.weight) != len(form.features):
        raise FitError(f"linear: has {len(form.linear.weight)} weights for {len(form.features)} features")
    for feature, weight in zip(form.features, form.linear.weight, strict=True):
        if feature.monotone * weight < 0:
            raise FitError(f"linear: {feature.name} breaks its direction")
    columns = (form.linear.weight, form.linear.low, form.linear.high, form.linear.missing)
    return _Linear(*(np.array(column, dtype=np.float64) for column in columns))


def _neighbourhood(form: DistanceForm | None) -> FittedRows | None:
    if form is None:
        return None
    for name in form.shape:
        if name not in INPUT_KIND:
            raise FitError(f"distance: this version of the metric knows no number named {name!r}")
    return FittedRows(
        columns=np.array([INPUT_KIND.index(name) for name in form.shape], dtype=_INT),
        scale=np.array(form.scale),
        rows=np.array(form.rows),
        nearest=form.nearest,
        near=form.near,
        far=form.far,
    )
