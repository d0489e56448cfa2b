"""A fit of `calibrated`: from features to a probability, and to the band in which its verdict is not to be trusted.

Sources: calibration map as in Zadrozny and Elkan 2002; band: class-conditional (Mondrian) split conformal prediction,
Vovk, Gammerman and Shafer 2005, chapter 4. The form in which fits are stored: docs/reference/calibrated.md.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from gradewire_server.metrics.calibrated.features.catalog import RULED_OUT, Feature
from gradewire_server.metrics.calibrated.stored_form import FitForm, RanksForm, TreesForm
from gradewire_server.metrics.calibrated.trees import Nodes, SoftTrees, TreeError

VERDICT: Final = 0.5
"""Probability from which an answer counts as right."""
ID_CHARACTERS: Final = 12
MAX_TEXT_CHARACTERS: Final = 8 << 20
_ROUNDING: Final = 1e-9
_INT: Final = np.intp


class FitError(ValueError):
    """A stored fit cannot be used; the message says why."""


@dataclass(frozen=True, slots=True, eq=False)
class _Ranks:
    """Order statistics of one class, as stored in `RanksForm`."""

    count: int
    ranks: NDArray[np.intp]
    values: NDArray[np.float64]

    def edge(self, confidence: float) -> float | None:
        """The value that at most the share 1 - confidence of the class lies beyond; None where the rows are too few.

        Of n held-out rows and a new one, exchangeable with them, the new one is beyond the k-th value with a
        probability of at most k / (n + 1).
        """
        most = int((1 - confidence) * (self.count + 1) + _ROUNDING)
        row = int(np.searchsorted(self.ranks, most, side="right")) - 1
        return float(self.values[row]) if row >= 0 else None


@dataclass(frozen=True, slots=True)
class Band:
    """Probabilities, from `lower` to `upper` and both included, at which a verdict is not trusted."""

    lower: float
    upper: float

    def holds(self, probability: float) -> bool:
        """Whether a probability lies inside."""
        return self.lower <= probability <= self.upper


@dataclass(frozen=True, slots=True, eq=False)
class CalibratedFit:
    """A fit for one model.

    Attributes:
        identity: What `fit_id` makes of the stored text.
        model_digest: 64 hex digits; whose vectors it was fitted on.
        columns: intp[used], which of the metric's features it reads.
        rules: intp[rules], which of the metric's features rule an answer out from 1 on.
        base: Log-odds before any tree.
        trees: Over the features that it reads.
        log_odds: float64[points], strictly ascending.
        probability: float64[points], never falling.
    """

    identity: str
    model_digest: str
    columns: NDArray[np.intp]
    rules: NDArray[np.intp]
    base: float
    trees: SoftTrees
    log_odds: NDArray[np.float64]
    probability: NDArray[np.float64]
    _right: _Ranks
    _wrong: _Ranks

    def raw(self, features: NDArray[np.float64]) -> float:
        """Log-odds before the map, for float64[features of the metric]; NaN is a feature that does not apply."""
        return self.base + self.trees.value(features[self.columns])

    def __call__(self, features: NDArray[np.float64]) -> float:
        """P(right), 0 to 1, of the metric's features; at most RULED_OUT where a rule calls the answer wrong."""
        learnt = self._learnt(features)
        return min(learnt, RULED_OUT) if self._ruled_out(features) else learnt

    def overruled(self, features: NDArray[np.float64]) -> bool:
        """Whether a rule calls an answer wrong that the trees call right: such a verdict is never certain."""
        return self._ruled_out(features) and self._learnt(features) >= VERDICT

    def _learnt(self, features: NDArray[np.float64]) -> float:
        return float(np.interp(self.raw(features), self.log_odds, self.probability))

    def _ruled_out(self, features: NDArray[np.float64]) -> bool:
        return bool((features[self.rules] >= 1).any())

    def band(self, confidence: float) -> Band:
        """Where the verdict is not trusted at `confidence`, above 0 and below 1.

        A verdict is trusted where the other one is ruled out and it is not: "wrong" below what nearly all right answers
        reach, "right" above what nearly all wrong ones stay under. The probability of the verdict's edge, 1/2, always
        lies inside. Where the rows are too few for such a confidence, the band is everything on that side.
        """
        lower, upper = self._right.edge(confidence), self._wrong.edge(confidence)
        return Band(
            lower=0.0 if lower is None else min(lower, VERDICT), upper=1.0 if upper is None else max(upper, VERDICT)
        )


def fit_id(text: str) -> str:
    """The name of a fit in results: 12 hex digits of the SHA-256 of its stored text."""
    return hashlib.sha256(text.encode()).hexdigest()[:ID_CHARACTERS]


def read_fit(text: str, known: Sequence[Feature], *, version: int) -> CalibratedFit:
    """Reads a stored fit and checks all that its use relies on.

    Args:
        text: JSON, see docs/reference/calibrated.md.
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
    return CalibratedFit(
        identity=fit_id(text),
        model_digest=form.model_digest,
        columns=columns,
        rules=np.array([place for place, feature in enumerate(known) if feature.rules_out], dtype=_INT),
        base=form.base,
        trees=trees,
        log_odds=np.array(form.map.log_odds),
        probability=np.array(form.map.probability),
        _right=_ranks(form.conformal.right),
        _wrong=_ranks(form.conformal.wrong),
    )


@lru_cache(maxsize=8)
def cached_fit(text: str, known: tuple[Feature, ...], version: int) -> CalibratedFit | str:
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


def _ranks(form: RanksForm) -> _Ranks:
    return _Ranks(form.count, np.array(form.ranks, dtype=_INT), np.array(form.values))
