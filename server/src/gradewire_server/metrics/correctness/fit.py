"""The fit, which turns features into a probability and a band of uncertain verdicts."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from gradewire_server.domain.items import quoted
from gradewire_server.domain.metric import ParameterError
from gradewire_server.metrics.correctness.features import RULED_OUT, VOTE_FEATURES, Feature
from gradewire_server.metrics.correctness.fit_form import ConformalForm, FitForm, VersionedForm
from gradewire_server.metrics.correctness.trees import SoftTrees, TreeError

F = TypeVar("F", bound=VersionedForm)

VERDICT: Final = 0.5
"""Minimum p(right) for an answer that counts as right."""
# Keep these constants and RULED_OUT equal to their copies in gradewire_stats.calibration.evaluate_fit.
_MISTAKEN_FROM: Final = 0.5
_MISTAKEN_SLOPE: Final = 1.25
"""At confidence c, the band contains 5/4 (c - 1/2) of all wrong verdicts: half of the wrong verdicts if c is 0.9."""

ID_CHARACTERS: Final = 12
_FIT_NAME: Final = re.compile("[0-9a-f]{8,64}")
VOTES: Final = "votes"
"""Name of the fit for references that are annotators' votes. Other fits have no name."""
MAX_TEXT_CHARACTERS: Final = 8 << 20
_INT: Final = np.intp


@dataclass(frozen=True, slots=True)
class Band:
    """A range of probabilities, including both ends, in which verdicts are uncertain."""

    lower: float
    upper: float

    def holds(self, probability: float) -> bool:
        """Return True if the band contains a probability."""
        return self.lower <= probability <= self.upper

    def towards(self, other: "Band", share: float) -> "Band":
        """Return a band whose ends are moved outwards, each by `share` of its distance to the same end of `other`."""
        return Band(
            lower=self.lower - share * max(0.0, self.lower - other.lower),
            upper=self.upper + share * max(0.0, other.upper - self.upper),
        )


EVERYTHING: Final = Band(0.0, 1.0)


def _band(held_out: ConformalForm, confidence: float) -> Band:
    """Return the band of uncertain verdicts at `confidence`, which is above 0 and below 1.

    At most the share 1 - `confidence` of right answers lies below the band, and at most this share of wrong answers
    lies above the band. The band also contains 1/2 and a share of wrong verdicts (see _MISTAKEN_SLOPE). With too few
    held-out rows, the band extends to 0 or 1.
    """
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
    """Raised when a stored fit cannot be used. The message says why."""


@dataclass(frozen=True, slots=True)
class ItemPosition:
    """An item's distance from the fitted rows; `far` (0 to 1) is the weight of the probability map for far items."""

    distance: float
    far: float


@dataclass(frozen=True, slots=True, eq=False)
class CorrectnessFit:
    """A fit for one model.

    Attributes:
        identity: The `fit_id` of the fit's stored text.
        columns: intp[used], the indices of the metric's features that the fit uses.
        rules: intp[rules], the indices of the features that rule an answer out at a value of at least 1.
        doubts: intp[doubts], the indices of the features that make the verdict "right" uncertain from 1 on.
        reads_votes: True if the features include those of annotators' votes.
    """

    identity: str
    form: FitForm
    columns: NDArray[np.intp]
    rules: NDArray[np.intp]
    doubts: NDArray[np.intp]
    trees: SoftTrees
    reads_votes: bool

    def raw(self, features: NDArray[np.float64]) -> float:
        """Return the log-odds before the map to probabilities.

        `features` is float64[metric's features]; NaN means "does not apply".
        """
        used = features[self.columns]
        linear = 0.0 if self.form.linear is None else self.form.linear.sum_of(used)
        return self.form.base + self.trees.value(used) + linear

    def position_of(self, input_kind: NDArray[np.float64]) -> ItemPosition | None:
        """Return an item's position, or None if the fit has no rows. `input_kind` is float64[len(INPUT_KIND)]."""
        rows = self.form.distance
        if rows is None:
            return None
        distance = rows.distance(input_kind)
        return ItemPosition(distance, rows.far_share(distance))

    def __call__(self, features: NDArray[np.float64], position: ItemPosition | None = None) -> float:
        """Return p(right), 0 to 1, for the metric's features.

        Without a `position`, the item counts as near the fitted rows. If a rule calls the answer wrong, p(right) is at
        most RULED_OUT.
        """
        learnt = self._learnt(features, position)
        return min(learnt, RULED_OUT) if self._ruled_out(features) else learnt

    def overruled(self, features: NDArray[np.float64], position: ItemPosition | None = None) -> bool:
        """Return True if a rule calls an answer wrong although the fit calls the answer right."""
        return self._ruled_out(features) and self._learnt(features, position) >= VERDICT

    def doubted(self, features: NDArray[np.float64], probability: float) -> bool:
        """Return True if p(right) calls an answer right that may only mention a reference."""
        return probability >= VERDICT and bool((features[self.doubts] >= 1).any())

    def _learnt(self, features: NDArray[np.float64], position: ItemPosition | None) -> float:
        raw = self.raw(features)
        near = self.form.map.p_right(raw)
        if position is None or self.form.far is None:
            return near
        return (1 - position.far) * near + position.far * self.form.far.map.p_right(raw)

    def _ruled_out(self, features: NDArray[np.float64]) -> bool:
        return bool((features[self.rules] >= 1).any())

    def band(self, confidence: float, position: ItemPosition | None = None) -> Band:
        """Return the band of uncertain verdicts at `confidence`, above 0 and below 1."""
        near, far = _bands(self, confidence)
        return near if position is None or position.far == 0 else near.towards(far, position.far)


@lru_cache(maxsize=64)
def _bands(fit: CorrectnessFit, confidence: float) -> tuple[Band, Band]:
    """Return the bands of a fit for near and for far items."""
    far = fit.form.far
    return _band(fit.form.conformal, confidence), EVERYTHING if far is None else _band(far.conformal, confidence)


def check_fit_name(fit: str | None) -> None:
    """Raise ParameterError unless the requested `fit` is empty or 8 to 64 hex digits."""
    if fit and _FIT_NAME.fullmatch(fit) is None:
        raise ParameterError("fit", f"must be 8 to 64 hex digits in lower case, or empty, not {quoted(fit)}")


def is_digits(fit: str | None) -> bool:
    """Return True if the requested `fit` is the beginning of a fit's ID, and no name."""
    return bool(fit) and _FIT_NAME.fullmatch(fit or "") is not None


def check_identity(identity: str, named: str | None) -> None:
    """Raise ParameterError if the model's fit ID does not begin with `named`."""
    if not identity.startswith(named or ""):
        raise ParameterError("fit", f"the model's fit is {identity}, not {named}")


def fit_id(text: str) -> str:
    """Return a fit's ID: the first 12 hex digits of the stored text's SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()[:ID_CHARACTERS]


def read_form(text: str, kind: type[F], *, version: int) -> F:
    """Parse and check the JSON text of a stored fit; `kind` is the class to return.

    Raises:
        FitError: The text is too long, does not follow the format, or is for a different version of the metric.
    """
    if len(text) > MAX_TEXT_CHARACTERS:
        raise FitError(f"has {len(text)} characters; at most {MAX_TEXT_CHARACTERS} are allowed")
    try:
        form = kind.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise FitError(f"{where or 'text'}: {first['msg']}") from None
    if form.metric_version != version:
        raise FitError(f"is for version {form.metric_version} of the metric, but this server has {version}")
    return form


def read_fit(text: str, known: Sequence[Feature], *, version: int) -> CorrectnessFit:
    """Parse and check a stored fit (JSON, see `FitForm`).

    `known` are the metric's features in order.

    Raises:
        FitError: The text does not follow the format, belongs to another version of the metric, uses an unknown
            feature, or violates a feature's constraints.
    """
    form = read_form(text, FitForm, version=version)
    columns = _columns(form, known)
    _check_linear(form)
    try:
        trees = SoftTrees.of(
            form.trees,
            np.array([feature.width for feature in form.features]),
            np.array([feature.monotone for feature in form.features], dtype=np.int8),
        )
    except TreeError as error:
        raise FitError(f"trees: {error}") from None
    rules = np.array([position for position, feature in enumerate(known) if feature.rules_out], dtype=_INT)
    doubts = np.array([position for position, feature in enumerate(known) if feature.doubts], dtype=_INT)
    reads_votes = set(VOTE_FEATURES) <= set(known)
    return CorrectnessFit(fit_id(text), form, columns, rules, doubts, trees, reads_votes)


@lru_cache(maxsize=8)
def cached_fit(text: str, known: tuple[Feature, ...], version: int) -> CorrectnessFit | str:
    """Return the cached result of `read_fit`, or the reason why the fit cannot be used."""
    try:
        return read_fit(text, known, version=version)
    except FitError as error:
        return str(error)


def _columns(form: FitForm, known: Sequence[Feature]) -> NDArray[np.intp]:
    positions = {rule.name: position for position, rule in enumerate(known)}
    names = [feature.name for feature in form.features]
    if len(set(names)) < len(names):
        raise FitError("features: a name occurs twice")
    for feature in form.features:
        if feature.name not in positions:
            raise FitError(f"features: this version of the metric has no feature {feature.name!r}")
        rule = known[positions[feature.name]]
        if rule.monotone and feature.monotone != rule.monotone:
            raise FitError(f"features: {feature.name} must have monotone {rule.monotone:+d}")
        if feature.width < rule.width:
            raise FitError(f"features: {feature.name} must have a width of at least {rule.width:g}")
    return np.array([positions[name] for name in names], dtype=_INT)


def _check_linear(form: FitForm) -> None:
    if form.linear is None:
        return
    if len(form.linear.weight) != len(form.features):
        raise FitError(f"linear: has {len(form.linear.weight)} weights for {len(form.features)} features")
    for feature, weight in zip(form.features, form.linear.weight, strict=True):
        if feature.monotone * weight < 0:
            raise FitError(f"linear: the weight of {feature.name} has the wrong sign")
