"""Differences of a candidate from a baseline on the same questions, and the consistency of a judge between orders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypedDict

import numpy as np

from gradewire_stats import scipy_stats
from gradewire_stats.bootstrap import Difference, Estimate, difference
from gradewire_stats.comparison.groups import RESAMPLES, GroupedRows, GroupStatistics, compare_groups

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from gradewire_stats.comparison.paired_rows import PairedRows


_SIDES = [("baseline",), ("candidate",)]


class _Sides(TypedDict):
    baseline: Estimate
    candidate: Estimate
    difference: Difference


_OUTCOMES = {"wins": 1.0, "ties": 0.0, "losses": -1.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictDifference:
    """Verdicts of a metric on the pairs with two verdicts.

    Attributes:
        pairs: Number of these pairs.
        baseline, candidate: Share of right answers on each side.
        difference: Candidate minus baseline.
        both: Pairs with two right answers.
        only_baseline, only_candidate: Pairs with one right answer, called discordant.
        neither: Pairs with two wrong answers.
        p_value: McNemar's exact two-sided test: the probability of such an uneven split of discordant pairs if both
            sides are equally good; 1 without discordant pairs. Assumes independent pairs.
    """

    pairs: int
    baseline: Estimate
    candidate: Estimate
    difference: Difference
    both: int
    only_baseline: int
    only_candidate: int
    neither: int
    p_value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EmptyAsWrong:
    """A metric with every empty answer counted as a score of 0, so that silence gains nothing.

    Attributes:
        scored: Pairs in which each answer is empty or has a score.
        baseline, candidate: Mean score of each side over these.
        difference: Candidate minus baseline.
    """

    scored: int
    baseline: Estimate
    candidate: Estimate
    difference: Difference


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricDifference:
    """A metric on all pairs.

    Attributes:
        pairs: Number of pairs.
        scored: Pairs with two scores, the basis of means and difference.
        baseline, candidate: Mean score of each side.
        difference: Candidate minus baseline.
        empty_as_wrong: The same with every empty answer counted as a score of 0.
        empty: Empty answers of baseline and candidate.
        failed: Answers of baseline and candidate that are not empty and have no score.
        verdicts: None if the metric gives no verdicts.
    """

    pairs: int
    scored: int
    baseline: Estimate
    candidate: Estimate
    difference: Difference
    empty_as_wrong: EmptyAsWrong
    empty: tuple[int, int]
    failed: tuple[int, int]
    verdicts: VerdictDifference | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """Preferences of a chooser.

    Attributes:
        pairs: Pairs with a winner or a tie.
        undecided: Pairs with neither.
        wins, ties, losses: Pairs with the candidate's answer preferred, neither, or the baseline's.
        win_share, tie_share, loss_share: The same as shares of `pairs`.
        p_value: Exact two-sided sign test: the probability of such an uneven split of wins and losses if both sides are
            equally good; 1 if all are ties, NaN without `pairs`. Assumes independent pairs.
    """

    pairs: int
    undecided: int
    wins: int
    ties: int
    losses: int
    win_share: Estimate
    tie_share: Estimate
    loss_share: Estimate
    p_value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PairComparison:
    """A candidate compared with a baseline."""

    pairs: int
    metrics: Mapping[str, MetricDifference]
    outcomes: Mapping[str, Outcomes]


def compare_pairs(rows: PairedRows, *, resamples: int = RESAMPLES, seed: int = 0) -> PairComparison:
    """Compute all differences and outcomes of all metrics and choosers.

    Intervals and differences are those of `compare_groups`: draws of whole questions within each data set.

    Raises:
        ValueError: There are no pairs.
        MissingScipyError: scipy is not installed.
    """
    if not len(rows):
        raise ValueError("no pairs of answers to compare")
    found = compare_groups(_columns(rows), by_row=True, resamples=resamples, seed=seed)
    return PairComparison(
        pairs=len(rows),
        metrics={label: _metric(rows, found, label) for label in rows.scores},
        outcomes={name: _outcomes(column, found, name) for name, column in rows.preferred.items()},
    )


def _columns(rows: PairedRows) -> GroupedRows:
    """Return every statistic as a column over the baseline's answers, then the candidate's."""
    columns: dict[str, NDArray[np.float64]] = {}
    filled = {label: np.where(rows.empty[label], 0.0, scores) for label, scores in rows.scores.items()}
    for kind, table in (("mean", rows.scores), ("filled", filled), ("right", rows.verdicts)):
        for label, pairs in table.items():
            # Leave out a score whose partner has none.
            columns[f"{kind} {label}"] = (pairs + 0.0 * pairs[:, ::-1]).T.ravel()
    for name, preferred in rows.preferred.items():
        for outcome, value in _OUTCOMES.items():
            column = np.where(np.isnan(preferred), np.nan, preferred == value)
            columns[f"{outcome} {name}"] = np.concatenate([np.full(len(rows), np.nan), column])
    sides = np.repeat(np.arange(len(_SIDES)), len(rows)).astype(np.intp)
    return GroupedRows(columns, sides, _SIDES, np.tile(rows.questions, len(_SIDES)), rows.strata)


def _metric(rows: PairedRows, found: Mapping[str, list[GroupStatistics]], label: str) -> MetricDifference:
    scored, filled = found[f"mean {label}"], found[f"filled {label}"]
    return MetricDifference(
        pairs=len(rows),
        scored=scored[0].scored,
        **_sides(scored),
        empty_as_wrong=EmptyAsWrong(scored=filled[0].scored, **_sides(filled)),
        empty=_counted(rows.empty[label]),
        failed=_counted(rows.failed[label]),
        verdicts=_verdicts(rows.verdicts[label], found[f"right {label}"]),
    )


def _counted(column: NDArray[np.bool_]) -> tuple[int, int]:
    before, after = column.sum(axis=0).tolist()
    return before, after


def _verdicts(verdicts: NDArray[np.float64], found: list[GroupStatistics]) -> VerdictDifference | None:
    before, after = verdicts[~np.isnan(verdicts.sum(axis=1))].T.astype(np.bool_)
    if not len(before):
        return None
    only_baseline, only_candidate = int((before & ~after).sum()), int((after & ~before).sum())
    return VerdictDifference(
        pairs=len(before),
        **_sides(found),
        both=int((before & after).sum()),
        only_baseline=only_baseline,
        only_candidate=only_candidate,
        neither=int((~before & ~after).sum()),
        p_value=_even_split(only_baseline, only_candidate),
    )


def _outcomes(preferred: NDArray[np.float64], found: Mapping[str, list[GroupStatistics]], name: str) -> Outcomes:
    wins, ties, losses = (int((preferred == value).sum()) for value in _OUTCOMES.values())
    win_share, tie_share, loss_share = (found[f"{outcome} {name}"][1].mean for outcome in _OUTCOMES)
    decided = wins + ties + losses
    return Outcomes(
        pairs=decided,
        undecided=len(preferred) - decided,
        wins=wins,
        ties=ties,
        losses=losses,
        win_share=win_share,
        tie_share=tie_share,
        loss_share=loss_share,
        p_value=_even_split(losses, wins) if decided else np.nan,
    )


def _sides(found: list[GroupStatistics]) -> _Sides:
    baseline, candidate = found
    nothing = difference(np.nan, np.array([]), questions=0)
    apart = nothing if candidate.paired is None else candidate.paired.mean
    return {"baseline": baseline.mean, "candidate": candidate.mean, "difference": apart}


def _even_split(one: int, other: int) -> float:
    """Return the two-sided exact p value of a split that would be even by chance."""
    return float(scipy_stats().binomtest(one, one + other).pvalue) if one + other else 1.0


_ORDERS: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderStatistics:
    """Verdicts of a judge on pairs shown in both orders.

    Attributes:
        pairs: Pairs with a verdict in both orders.
        consistent: Pairs with the same winner, or a tie, in both orders.
        consistency: Share of consistent pairs, 0 to 1.
        position_bias: Share of verdicts for the answer shown first minus that for the other, -1 to 1; 0 without bias.
    """

    pairs: int
    consistent: int
    consistency: Estimate
    position_bias: Estimate


def order_statistics(
    orders: Sequence[Sequence[Mapping[str, object]]],
    questions: Sequence[int] | NDArray[np.intp],
    strata: Sequence[int] | NDArray[np.intp],
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> OrderStatistics | None:
    """Compute the consistency between orders; None if no pair has a verdict in both.

    Args:
        orders: Verdicts of each pair by order, with `first` and `winner` as the same names; `winner` is "tie" for a tie
            and None without a verdict.
        questions: Number of each pair's question, as in `GroupedRows`; draws are of whole questions.
        strata: Data set of each question, as in `GroupedRows`.
        resamples: Number of draws.
        seed: Seed of the draws.
    """
    agree, bias = np.full(len(orders), np.nan), np.full(len(orders), np.nan)
    for place, said in enumerate(orders):
        winners = [order.get("winner") for order in said]
        if len(winners) == _ORDERS and None not in winners:
            agree[place] = len(set(winners)) == 1
            bias[place] = np.mean([_leaning(order) for order in said])
    pairs = int(np.count_nonzero(~np.isnan(agree)))
    if not pairs:
        return None
    scores = {"agree": agree, "bias": bias}
    everything = np.zeros(len(orders), np.intp)
    rows = GroupedRows(scores, everything, [("",)], np.asarray(questions, np.intp), np.asarray(strata, np.intp))
    found = compare_groups(rows, resamples=resamples, seed=seed)
    return OrderStatistics(
        pairs=pairs,
        consistent=int(np.nansum(agree)),
        consistency=found["agree"][0].mean,
        position_bias=found["bias"][0].mean,
    )


def _leaning(order: Mapping[str, object]) -> float:
    """Return 1 for the answer shown first, -1 for the other, 0 for a tie."""
    if order["winner"] == "tie":
        return 0.0
    return 1.0 if order["winner"] == order["first"] else -1.0
