"""Fits of metric `auto`: thresholds with a bounded risk, the gain of a judge, and their quality on held-out rows."""

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
"""Probability with which the bound of a risk may fail, unless it is said otherwise."""
EXACT = 2.0
"""Confidence of an exact match: above that of every probability."""


@dataclass(frozen=True, slots=True, eq=False)
class CascadeRows:
    """Labelled rows.

    Attributes:
        exact: bool[rows], `exact_match`.
        probability: float64[rows], of `correctness`.
        denied: bool[rows], UNCERTAIN at `correctness?confidence=0.5`: the answer denies what it says.
        right: bool[rows], people's.
        judge_verdicts: float64[rows], 1 right, 0 wrong, NaN where the judge was not asked or failed.
        judge_scores: float64[rows], the judge's score; NaN where there is none.
        questions: Of each row, as written; a blank one is a question of its own.
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
        """float64[rows]: EXACT, else that of `correctness` in its verdict, 0.5 to 1; 0.5 where it is denied."""
        sure = np.where(self.denied, 0.5, np.maximum(self.probability, 1 - self.probability))
        return np.where(self.exact, EXACT, sure)

    @property
    def verdicts(self) -> NDArray[np.bool_]:
        """bool[rows], of the cheap metrics."""
        return self.exact | (self.probability >= 0.5)

    @property
    def scores(self) -> NDArray[np.float64]:
        """float64[rows], of the cheap metrics: 1 where a reference is matched, else the probability."""
        return np.where(self.exact, 1.0, self.probability)

    def where(self, kept: NDArray[np.bool_]) -> "CascadeRows":
        """The rows of a mask, bool[rows]."""
        columns = {each.name: getattr(self, each.name)[kept] for each in fields(self) if each.name != "questions"}
        return CascadeRows(**columns, questions=list(compress(self.questions, kept)))

    def half(self, half: Half) -> "CascadeRows":
        """The rows whose question belongs to a half."""
        return self.where(np.array([half_of(question) == half for question in self.questions], dtype=np.bool_))

    @property
    def clusters(self) -> NDArray[np.intp]:
        """intp[rows], number of each row's question, from 0 without gaps."""
        return numbered(question_keys(self.questions))

    @property
    def judged(self) -> NDArray[np.bool_]:
        """bool[rows], whether the judge gave a verdict."""
        return ~np.isnan(self.judge_verdicts)


SHARES: Final = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
LEAST_ROWS: Final = 20
"""Judged rows without which nothing is said of a judge."""
EVERYWHERE: Final = EXACT + 1
_ERROR: Final = 0.05


@dataclass(frozen=True, slots=True)
class JudgeGain:
    """Judge and cheap metrics on the rows below a confidence.

    Attributes:
        share: Of all rows, at most so many are below it.
        below: The confidence.
        rows: Judged rows there.
        cheap: Their accuracy by the cheap metrics; NaN without rows.
        judge: Their accuracy by the judge; NaN without rows.
        low: Lower end of the paired interval of judge minus cheap, over questions; NaN where there are too few rows.
        high: Upper end of it.
        adds: Whether the interval lies above 0.
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
        """For JSON; NaN is left out."""
        return {name: value for name, value in asdict(self).items() if value == value}  # noqa: PLR0124 - NaN is not


def judge_gains(rows: CascadeRows, *, resamples: int, seed: int) -> tuple[JudgeGain, ...]:
    """Compares judge and cheap metrics among the least certain SHARES of the rows.

    All intervals together miss with a probability of 5 % (Bonferroni): the widest share whose interval lies above 0 is
    taken, and with more looks one of them would lie there by luck.
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
    """The confidence below which the judge is worth asking: that of the largest share where it adds; None: nowhere."""
    return max((each.below for each in gains if each.adds), default=None)


def _interval(
    differences: NDArray[np.float64], clusters: NDArray[np.intp], *, resamples: int, seed: int
) -> tuple[float, float]:
    """Of the mean, by draws of whole questions."""
    _, own = np.unique(clusters, return_inverse=True)
    sums, counts = np.bincount(own, weights=differences), np.bincount(own)
    means = ratio_draws(sums[:, None], counts[:, None], resamples=resamples, seed=seed)
    tail = _ERROR / len(SHARES) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return float(low), float(high)


def exact_p_values(wrong: NDArray[np.intp], accepted: NDArray[np.intp], risk: float) -> NDArray[np.float64]:
    """p-values of "more than the share `risk` of accepted verdicts is wrong", of independent rows.

    Args:
        wrong: intp[sets], wrong ones among the accepted rows.
        accepted: intp[sets], accepted rows; without any the p-value is 1.
        risk: Above 0 and below 1.
    """
    return np.asarray(scipy_stats().binom.cdf(wrong, accepted, risk), dtype=np.float64)


def last_rejected(p_values: Sequence[float] | NDArray[np.float64], start: int, delta: float) -> int | None:
    """Fixed sequence testing: the last of the hypotheses from `start` on that are all rejected at the level `delta`.

    With the probability 1 - delta none of those from `start` to the result is true. The order and the start must not
    depend on what is tested.

    Returns:
        Its position; None where already the first is not rejected.
    """
    rejected = sum(1 for _ in takewhile(lambda p_value: p_value <= delta, p_values[start:]))
    return start + rejected - 1 if rejected else None


FORMAT: Final = 1
RISKS: Final = (0.005, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.125, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5)
BUDGETS: Final = (0.0, 0.01, 0.02, 0.03, 0.04, *(round(0.05 * step, 2) for step in range(1, 21)))
_CANDIDATES: Final = 200
_LEAST_SHARE: Final = 0.1
"""Of the rows that the first threshold to be tested accepts: fewer would end the sequence by chance."""


@dataclass(frozen=True, slots=True)
class FittedRisk:
    """What was fitted for one risk.

    Attributes:
        risk: The bound.
        accepts_from: Least confidence of accepted verdicts; infinite: none is accepted.
        accepted: Rows with such verdicts, of those that were tested: one of each question.
        wrong: Wrong ones of these.
    """

    risk: float
    accepts_from: float
    accepted: int
    wrong: int


@dataclass(frozen=True, slots=True)
class CascadeFit:
    """A fit of `auto`.

    Attributes:
        budgets: Budget and least confidence of accepted verdicts, ascending.
        gains: Judge against cheap metrics among the least certain rows.
        judged_below: Confidence below which the judge is worth asking; None: nowhere.
        delta: The bounds hold with the probability 1 - delta each.
        form: The form that a model stores, JSON.
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
    """Fits on labelled rows that the fit of `correctness` has not seen.

    Args:
        rows: At least one; rows of a question depend on each other, questions do not.
        provenance: What the form says of encoder, judge and rows; see docs/reference/auto.md.
        delta: Probability with which the bound of a risk may fail, above 0 and below 1.
        resamples: Draws behind the intervals of the judge's gain.
        seed: Of these draws.

    Raises:
        ValueError: There is no row, or delta is out of range.
    """
    if not len(rows):
        raise ValueError("there is no row to fit on")
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
    """For each of RISKS the most verdicts that may be accepted: learn then test, by fixed sequence testing.

    Answers to one question depend on each other, so one of each question is drawn, and these rows are what is tested.
    Thresholds are tested from the surest verdicts on, each against "more than the share `risk` of what it accepts is
    wrong". The first one tested accepts a tenth of the rows, and as many as would pass at delta² were none of them
    wrong; neither depends on labels. A smaller risk never accepts more than a larger one.
    """
    rows = rows.where(_one_of_each(rows.clusters))
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
        # What a larger risk does not allow a smaller one must not: any threshold that was tested and passed will do.
        most = -1 if last is None or min(last, most) < start else min(last, most)
        fitted = (math.inf, 0, 0) if most < 0 else (thresholds[most], int(accepted[most]), int(wrong[most]))
        found.append(FittedRisk(risk, *fitted))
    return tuple(reversed(found))


def budget_threshold(confidence: NDArray[np.float64], budget: float) -> float:
    """Least confidence of accepted verdicts with which at most the share `budget` of these rows is below it.

    Infinite where the budget is 1; where no row may be below it, the least that there is, 0.5.
    """
    most = math.floor(budget * len(confidence) + 1e-9)
    if most >= len(confidence):
        return math.inf
    return float(np.sort(confidence)[most]) if most else 0.5


def _one_of_each(clusters: NDArray[np.intp]) -> NDArray[np.bool_]:
    """bool[rows], one row of each question, drawn without a look at anything."""
    order = np.random.default_rng(0).permutation(len(clusters))
    _, first = np.unique(clusters[order], return_index=True)
    kept = np.zeros(len(clusters), dtype=np.bool_)
    kept[order[first]] = True
    return kept


def _thresholds(confidence: NDArray[np.float64]) -> list[float]:
    """Descending, from an exact match to every verdict: at most as many steps of about equally many rows."""
    known = np.unique(confidence[confidence < EXACT])
    places = np.unique(np.linspace(0, len(known) - 1, min(len(known), _CANDIDATES)).round().astype(int))
    inner = known[places][::-1].tolist() if len(known) else []
    return [EXACT, *(value for value in inner if value > 0.5), 0.5]


def _entry(share: float, accepts_from: float) -> dict[str, Any]:
    return {"share": share, "accepts_from": None if math.isinf(accepts_from) else accepts_from}


@dataclass(frozen=True, slots=True)
class HeldRisk:
    """What the band of a risk gives on other rows.

    Attributes:
        risk: The bound.
        rows: All of them.
        accepted: Those whose verdict is accepted without the judge.
        wrong: Wrong ones among these.
        judged: Rows that the judge is asked about.
        accuracy: Share of right verdicts of `auto`, all rows; NaN where the judge would be asked about a row that it
            has not judged.
    """

    risk: float
    rows: int
    accepted: int
    wrong: int
    judged: int
    accuracy: float

    @property
    def wrong_share(self) -> float:
        """Of the accepted verdicts; NaN without any."""
        return self.wrong / self.accepted if self.accepted else math.nan

    @property
    def held(self) -> bool:
        """Whether at most the share `risk` of the accepted verdicts is wrong; nothing accepted holds it."""
        return self.wrong <= self.risk * self.accepted


def held_risks(fit: CascadeFit, rows: CascadeRows) -> tuple[HeldRisk, ...]:
    """Of every risk that was fitted, on rows that the fit has not seen."""
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
    """bool[rows], whether the judge decides: below the threshold, and where it is worth asking."""
    below = fit.judged_below or 0.0
    return np.asarray(rows.confidence < min(accepts_from, below))


def _accuracy(rows: CascadeRows, asked: NDArray[np.bool_]) -> float:
    if (asked & ~rows.judged).any():
        return math.nan
    verdicts = np.where(asked, rows.judge_verdicts == 1, rows.verdicts)
    return float(np.mean(verdicts == rows.right)) if len(rows) else math.nan
