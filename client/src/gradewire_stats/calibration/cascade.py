"""Fit the metric `auto`: choose thresholds with a bounded risk, measure a judge's gain, and test on held-out rows."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import compress, takewhile
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gradewire_stats import scipy_stats
from gradewire_stats.bootstrap import numbered, ratio_draws
from gradewire_stats.calibration.labelled_rows import Half, half_of, question_keys

DELTA = 0.1
"""Default maximum probability that the bound on a risk fails."""
EXACT = 2.0
"""Confidence of a literal exact match, above every probability."""


@dataclass(frozen=True, slots=True, eq=False)
class CascadeRows:
    """Labelled rows with the results of the cheap metrics and of a judge.

    Attributes:
        exact: bool[rows], True for an exact match that `auto` takes for certain, because it is literal.
        probability: float64[rows], probabilities from `correctness`.
        denied: bool[rows], True if `correctness?confidence=0.5` gives the warning UNCERTAIN because of a rule or a
            doubt.
        right: bool[rows], human labels.
        judge_verdicts: float64[rows]: 1 (right), 0 (wrong) or NaN (the judge was not called or failed).
        judge_scores: float64[rows], the judge's scores, NaN without a score.
        questions: Text of each row's question. Each blank question counts as a question of its own.
    """

    exact: NDArray[np.bool_]
    probability: NDArray[np.float64]
    denied: NDArray[np.bool_]
    right: NDArray[np.bool_]
    judge_verdicts: NDArray[np.float64]
    judge_scores: NDArray[np.float64]
    questions: Sequence[str]

    def __len__(self) -> int:
        return len(self.right)

    @property
    def confidence(self) -> NDArray[np.float64]:
        """float64[rows]: EXACT if `exact`, 0.5 if `denied`, otherwise `correctness`'s confidence, 0.5 to 1."""
        sure = np.where(self.denied, 0.5, np.maximum(self.probability, 1 - self.probability))
        return np.where(self.exact, EXACT, sure)

    @property
    def verdicts(self) -> NDArray[np.bool_]:
        """bool[rows], verdicts by the cheap metrics."""
        return self.exact | (self.probability >= 0.5)

    @property
    def scores(self) -> NDArray[np.float64]:
        """float64[rows], scores by the cheap metrics: 1 if `exact`, otherwise `probability`."""
        return np.where(self.exact, 1.0, self.probability)

    def where(self, kept: NDArray[np.bool_]) -> "CascadeRows":
        """Return the rows that a mask, bool[rows], selects."""
        columns = {each.name: getattr(self, each.name)[kept] for each in fields(self) if each.name != "questions"}
        return CascadeRows(**columns, questions=list(compress(self.questions, kept)))

    def half(self, half: Half) -> "CascadeRows":
        """Return the rows whose questions are in this half."""
        return self.where(np.array([half_of(question) == half for question in self.questions], dtype=np.bool_))

    @property
    def clusters(self) -> NDArray[np.intp]:
        """intp[rows], each row's question number, from 0 without gaps."""
        return numbered(question_keys(self.questions))

    @property
    def judged(self) -> NDArray[np.bool_]:
        """bool[rows], True if the judge gave a verdict."""
        return ~np.isnan(self.judge_verdicts)


SHARES: Final = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
LEAST_ROWS: Final = 20
"""Minimum number of judged rows for a statement about a judge."""
EVERYWHERE: Final = EXACT + 1
_ERROR: Final = 0.05


@dataclass(frozen=True, slots=True)
class JudgeGain:
    """A judge compared with the cheap metrics, on the rows below a confidence.

    Attributes:
        share: Maximum share of rows with a confidence below `below`.
        below: Upper limit (exclusive) of the rows' confidence.
        rows: Number of judged rows below this limit.
        cheap: The cheap metrics' accuracy on these rows, or NaN without rows.
        judge: The judge's accuracy on these rows, or NaN without rows.
        low: Lower bound of `judge` minus `cheap`, from draws of questions, or NaN if there are too few rows.
        high: Upper bound of `judge` minus `cheap`.
        adds: True if the interval lies above 0.
    """

    share: float
    below: float
    rows: int
    cheap: float
    judge: float
    low: float
    high: float
    adds: bool

    def to_dict(self) -> dict[str, Any]:
        """Return a dict for JSON, without NaN values."""
        return {name: value for name, value in asdict(self).items() if value == value}  # noqa: PLR0124 - NaN is not


def judge_gains(rows: CascadeRows, *, resamples: int, seed: int) -> tuple[JudgeGain, ...]:
    """Compare a judge with the cheap metrics on the least certain rows, for each share in SHARES.

    The probability that any interval misses the true value is at most 5 % (Bonferroni correction).
    """
    ordered = np.sort(rows.confidence)
    clusters = rows.clusters
    found = []
    for share in SHARES:
        most = math.floor(share * len(rows) + 1e-9)
        below = EVERYWHERE if most >= len(rows) else float(ordered[most])
        inside = rows.judged & (rows.confidence < below)
        cheap = (rows.verdicts == rows.right)[inside].astype(np.float64)
        judge = ((rows.judge_verdicts == 1) == rows.right)[inside].astype(np.float64)
        low, high = math.nan, math.nan
        if len(cheap) >= LEAST_ROWS:
            low, high = _interval(judge - cheap, clusters[inside], resamples=resamples, seed=seed)
        found.append(
            JudgeGain(
                share=share,
                below=below,
                rows=len(cheap),
                cheap=float(cheap.mean()) if len(cheap) else math.nan,
                judge=float(judge.mean()) if len(judge) else math.nan,
                low=low,
                high=high,
                adds=low > 0,
            )
        )
    return tuple(found)


def judged_below(gains: Sequence[JudgeGain]) -> float | None:
    """Return the highest confidence `below` of the gains with `adds`, or None if there is no such gain."""
    return max((each.below for each in gains if each.adds), default=None)


def _interval(
    differences: NDArray[np.float64], clusters: NDArray[np.intp], *, resamples: int, seed: int
) -> tuple[float, float]:
    _, own = np.unique(clusters, return_inverse=True)
    sums, counts = np.bincount(own, weights=differences), np.bincount(own)
    means = ratio_draws(sums[:, None], counts[:, None], resamples=resamples, seed=seed)
    tail = _ERROR / len(SHARES) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return float(low), float(high)


def exact_p_values(wrong: NDArray[np.intp], accepted: NDArray[np.intp], risk: float) -> NDArray[np.float64]:
    """Return p values for the hypothesis that more than the share `risk` of accepted verdicts is wrong.

    Args:
        wrong: intp[sets], number of wrong verdicts among the accepted rows. The rows must be independent.
        accepted: intp[sets], number of accepted rows. If no row is accepted, the p value is 1.
        risk: Above 0 and below 1.
    """
    return np.asarray(scipy_stats().binom.cdf(wrong, accepted, risk), dtype=np.float64)


def last_rejected(p_values: Sequence[float] | NDArray[np.float64], start: int, delta: float) -> int | None:
    """Return the last hypothesis that a fixed sequence test rejects at the level `delta`, starting from `start`.

    With probability 1 - delta, no rejected hypothesis is true. The order and the start must not depend on the tested
    data.

    Returns:
        The hypothesis's position, or None if the hypothesis at `start` is not rejected.
    """
    rejected = sum(1 for _ in takewhile(lambda p_value: p_value <= delta, p_values[start:]))
    return start + rejected - 1 if rejected else None


FORMAT: Final = 1
RISKS: Final = (0.005, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.125, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5)
BUDGETS: Final = (0.0, 0.01, 0.02, 0.03, 0.04, *(round(0.05 * step, 2) for step in range(1, 21)))
_CANDIDATES: Final = 200
_LEAST_SHARE: Final = 0.1
"""Minimum share of rows that the first tested threshold accepts. With fewer rows, chance might end the tests early."""


@dataclass(frozen=True, slots=True)
class FittedRisk:
    """The threshold fitted for a risk.

    Attributes:
        risk: Maximum share of wrong verdicts among accepted verdicts.
        accepts_from: Minimum confidence of accepted verdicts, or infinity if no verdict is accepted.
        accepted: Number of tested rows with accepted verdicts, at most one per question.
        wrong: Number of wrong verdicts among `accepted`.
    """

    risk: float
    accepts_from: float
    accepted: int
    wrong: int


@dataclass(frozen=True, slots=True)
class CascadeFit:
    """A fit of the metric `auto`.

    Attributes:
        risks: The fitted threshold for each risk in RISKS, by ascending risk.
        budgets: Each budget with the minimum confidence of accepted verdicts, by ascending budget.
        judged_below: Confidence below which a judge helps, or None if a judge never helps.
        delta: Maximum probability that a risk's bound fails.
        form: The JSON document that a model stores.
    """

    risks: tuple[FittedRisk, ...]
    budgets: tuple[tuple[float, float], ...]
    gains: tuple[JudgeGain, ...]
    judged_below: float | None
    delta: float
    form: dict[str, Any]


def fit_cascade(
    rows: CascadeRows, provenance: Mapping[str, Any], *, delta: float = DELTA, resamples: int = 2000, seed: int = 0
) -> CascadeFit:
    """Fit `auto` on labelled rows that the fit of `correctness` has not seen.

    Args:
        rows: At least one row. Rows with the same question may depend on each other, but questions must be independent.
        provenance: Encoder, judge and rows to store in the form (see docs/reference/auto.md).
        delta: Maximum probability that a risk's bound fails, above 0 and below 1.
        resamples: Number of draws for the intervals of the judge's gains.
        seed: Seed for the draws.

    Raises:
        ValueError: There are no rows, or delta is out of range.
    """
    if not len(rows):
        raise ValueError("there are no rows to fit on")
    if not 0 < delta < 1:
        raise ValueError(f"delta must be above 0 and below 1, not {delta}")
    risks = fitted_risks(rows, delta)
    budgets = tuple((budget, budget_threshold(rows.confidence, budget)) for budget in BUDGETS)
    gains = judge_gains(rows, resamples=resamples, seed=seed)
    below = judged_below(gains)
    form = {
        "format": FORMAT,
        **provenance,
        "delta": delta,
        "risks": [
            {**_entry(each.risk, each.accepts_from), "accepted": each.accepted, "wrong": each.wrong} for each in risks
        ],
        "budgets": [_entry(*each) for each in budgets],
        "asked_below": below,
        "gains": [each.to_dict() for each in gains],
    }
    return CascadeFit(risks, budgets, gains, below, delta, form)


def fitted_risks(rows: CascadeRows, delta: float) -> tuple[FittedRisk, ...]:
    """Find the lowest valid threshold for each risk in RISKS by fixed sequence testing (learn then test).

    Answers to the same question depend on each other, so the tests use a random row per question. The tests go from the
    highest threshold down. Each test's hypothesis is that the share of wrong verdicts among the accepted verdicts is
    above `risk`. The first threshold accepts at least a tenth of the rows, and enough rows to pass the test at the
    level delta² if no verdict is wrong. Neither condition depends on labels. A smaller risk never accepts more verdicts
    than a larger risk.
    """
    rows = rows.where(_one_row_per_question(rows.clusters))
    thresholds = _thresholds(rows.confidence)
    taken = rows.confidence[None, :] >= np.array(thresholds)[:, None]
    accepted, wrong = taken.sum(axis=1), (taken & (rows.verdicts != rows.right)).sum(axis=1)
    found: list[FittedRisk] = []
    most = len(thresholds)
    for risk in reversed(RISKS):
        could_pass = (accepted >= _LEAST_SHARE * len(rows)) & (
            exact_p_values(np.zeros_like(wrong), accepted, risk) <= delta**2
        )
        start = int(np.argmax(could_pass)) if could_pass.any() else len(thresholds)
        last = last_rejected(exact_p_values(wrong, accepted, risk), start, delta)
        # A smaller risk must not accept more verdicts than a larger risk, so use the larger risk's threshold if
        # that is higher. It is valid, because all thresholds from `start` to `last` passed the tests.
        most = -1 if last is None or min(last, most) < start else min(last, most)
        fitted = (math.inf, 0, 0) if most < 0 else (thresholds[most], int(accepted[most]), int(wrong[most]))
        found.append(FittedRisk(risk, *fitted))
    return tuple(reversed(found))


def budget_threshold(confidence: NDArray[np.float64], budget: float) -> float:
    """Return the minimum confidence of accepted verdicts if a judge may decide at most the share `budget` of the rows.

    The result is infinite for a budget of 1, and 0.5 (the lowest confidence) if the budget allows no row.
    """
    most = math.floor(budget * len(confidence) + 1e-9)
    if most >= len(confidence):
        return math.inf
    return float(np.sort(confidence)[most]) if most else 0.5


def _one_row_per_question(clusters: NDArray[np.intp]) -> NDArray[np.bool_]:
    order = np.random.default_rng(0).permutation(len(clusters))
    _, first = np.unique(clusters[order], return_index=True)
    kept = np.zeros(len(clusters), dtype=np.bool_)
    kept[order[first]] = True
    return kept


def _thresholds(confidence: NDArray[np.float64]) -> list[float]:
    """Return descending thresholds, spaced evenly among the confidences.

    The first threshold accepts only exact matches, and the last threshold accepts all verdicts.
    """
    known = np.unique(confidence[confidence < EXACT])
    places = np.unique(np.linspace(0, len(known) - 1, min(len(known), _CANDIDATES)).round().astype(int))
    inner = known[places][::-1].tolist() if len(known) else []
    return [EXACT, *(value for value in inner if value > 0.5), 0.5]


def _entry(share: float, accepts_from: float) -> dict[str, Any]:
    return {"share": share, "accepts_from": None if math.isinf(accepts_from) else accepts_from}


@dataclass(frozen=True, slots=True)
class HeldRisk:
    """The result of a fitted risk on held-out rows.

    Attributes:
        accepted: Number of rows with a verdict that is accepted without the judge.
        wrong: Number of wrong verdicts among `accepted`.
        accuracy: Share of right verdicts by `auto` over all rows, or NaN if a row for the judge lacks the judge's
            verdict.
    """

    risk: float
    rows: int
    accepted: int
    wrong: int
    judged: int
    accuracy: float

    @property
    def wrong_share(self) -> float:
        """Share of wrong verdicts among accepted verdicts, or NaN if no verdict is accepted."""
        return self.wrong / self.accepted if self.accepted else math.nan

    @property
    def held(self) -> bool:
        """True if at most the share `risk` of the accepted verdicts is wrong, or no verdict is accepted."""
        return self.wrong <= self.risk * self.accepted


def held_risks(fit: CascadeFit, rows: CascadeRows) -> tuple[HeldRisk, ...]:
    """Return every fitted risk's result on rows that the fit has not seen."""
    wrong = rows.verdicts != rows.right
    found = []
    for each in fit.risks:
        accepted = rows.confidence >= each.accepts_from
        asked = judged_rows(fit, rows, each.accepts_from)
        found.append(
            HeldRisk(
                risk=each.risk,
                rows=len(rows),
                accepted=int(accepted.sum()),
                wrong=int((wrong & accepted).sum()),
                judged=int(asked.sum()),
                accuracy=_accuracy(rows, asked),
            )
        )
    return tuple(found)


def judged_rows(fit: CascadeFit, rows: CascadeRows, accepts_from: float) -> NDArray[np.bool_]:
    """Return bool[rows], True for the rows that the judge decides.

    The confidence of these rows is below both `accepts_from` and `fit.judged_below`.
    """
    below = fit.judged_below or 0.0
    return np.asarray(rows.confidence < min(accepts_from, below))


def _accuracy(rows: CascadeRows, asked: NDArray[np.bool_]) -> float:
    if (asked & ~rows.judged).any():
        return math.nan
    verdicts = np.where(asked, rows.judge_verdicts == 1, rows.verdicts)
    return float(np.mean(verdicts == rows.right)) if len(rows) else math.nan
