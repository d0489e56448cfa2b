"""Differences between a candidate and a baseline on the same questions, and a judge's consistency between orders."""

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
    """A metric's verdicts on pairs with verdicts on both answers.

    Attributes:
        pairs: Number of pairs with verdicts on both answers.
        baseline, candidate: Share of right answers on each side.
        difference: Candidate minus baseline.
        both: Number of pairs with two right answers.
        only_baseline, only_candidate: Numbers of pairs in which only this side's answer is right (discordant pairs).
        neither: Number of pairs with two wrong answers.
        p_value: p value of McNemar's exact two-sided test, which assumes independent pairs: the probability that the
            discordant pairs split at least as unevenly as here if both sides are equally good. 1 without discordant
            pairs.
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
    """A metric on all pairs, with every empty answer counted as a wrong one, so that not answering gains nothing.

    Attributes:
        scored: Number of pairs in which each answer is empty or has a score.
        baseline, candidate: Each side's mean score over these pairs, with 0 for an empty answer.
        difference: Candidate minus baseline.
        verdicts: Difference in verdicts, with every empty answer called wrong. None if the metric gives no verdicts.
    """

    scored: int
    baseline: Estimate
    candidate: Estimate
    difference: Difference
    verdicts: VerdictDifference | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricDifference:
    """A metric on all pairs.

    Attributes:
        scored: Number of pairs with two scores. Means and difference use only these pairs.
        baseline, candidate: Each side's mean score.
        difference: Candidate minus baseline.
        empty_as_wrong: Means, difference and verdicts with every empty answer counted as a wrong one.
        empty: Number of empty answers from baseline and from candidate.
        failed: Number of nonempty answers without a score, from baseline and from candidate.
        incomplete: Number of pairs in which the candidate's answer is empty, or either answer failed.
        verdicts: Difference in verdicts, or None if the metric gives no verdicts.
    """

    pairs: int
    scored: int
    baseline: Estimate
    candidate: Estimate
    difference: Difference
    empty_as_wrong: EmptyAsWrong
    empty: tuple[int, int]
    failed: tuple[int, int]
    incomplete: int
    verdicts: VerdictDifference | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """The preferences of a chooser, which is a metric or a judge.

    Attributes:
        pairs: Number of pairs with a winner or a tie.
        undecided: Number of pairs with neither a winner nor a tie.
        win_share, tie_share, loss_share: Wins, ties and losses as shares of `pairs`.
        p_value: p value of the exact two-sided sign test, which assumes independent pairs: the probability that wins
            and losses split at least as unevenly as here if both sides are equally good. 1 if all pairs are ties, NaN
            without pairs.
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
    """Compute differences for all metrics and outcomes for all choosers.

    Intervals come from draws of whole questions, stratified by data set.

    Raises:
        ValueError: There are no pairs.
        MissingScipyError: scipy is not installed.
    """
    if not len(rows):
        raise ValueError("there are no pairs of answers to compare")
    found = compare_groups(_columns(rows), by_row=True, resamples=resamples, seed=seed)
    return PairComparison(
        pairs=len(rows),
        metrics={label: _metric(rows, found, label) for label in rows.scores},
        outcomes={name: _outcomes(column, found, name) for name, column in rows.preferred.items()},
    )


def _columns(rows: PairedRows) -> GroupedRows:
    columns: dict[str, NDArray[np.float64]] = {}
    kinds = {"mean": rows.scores, "right": rows.verdicts}
    kinds |= {f"filled {kind}": _empty_as_wrong(rows, table) for kind, table in kinds.items()}
    for kind, table in kinds.items():
        for label, pairs in table.items():
            # Make a score NaN if the other answer in the pair has no score.
            columns[f"{kind} {label}"] = (pairs + 0.0 * pairs[:, ::-1]).T.ravel()
    for name, preferred in rows.preferred.items():
        for outcome, value in _OUTCOMES.items():
            column = np.where(np.isnan(preferred), np.nan, preferred == value)
            columns[f"{outcome} {name}"] = np.concatenate([np.full(len(rows), np.nan), column])
    sides = np.repeat(np.arange(len(_SIDES)), len(rows)).astype(np.intp)
    return GroupedRows(columns, sides, _SIDES, np.tile(rows.questions, len(_SIDES)), rows.strata)


def _empty_as_wrong(rows: PairedRows, table: Mapping[str, NDArray[np.float64]]) -> dict[str, NDArray[np.float64]]:
    return {label: np.where(rows.empty[label], 0.0, values) for label, values in table.items()}


def _metric(rows: PairedRows, found: Mapping[str, list[GroupStatistics]], label: str) -> MetricDifference:
    scored, filled = found[f"mean {label}"], found[f"filled mean {label}"]
    verdicts = _verdicts(rows.verdicts[label], found[f"right {label}"])
    filled_verdicts = np.where(rows.empty[label], 0.0, rows.verdicts[label])
    return MetricDifference(
        pairs=len(rows),
        scored=scored[0].scored,
        **_sides(scored),
        empty_as_wrong=EmptyAsWrong(
            scored=filled[0].scored,
            **_sides(filled),
            verdicts=verdicts and _verdicts(filled_verdicts, found[f"filled right {label}"]),
        ),
        empty=_counted(rows.empty[label]),
        failed=_counted(rows.failed[label]),
        incomplete=int((rows.empty[label][:, 1] | rows.failed[label].any(axis=1)).sum()),
        verdicts=verdicts,
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
        p_value=_even_split_p_value(only_baseline, only_candidate),
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
        p_value=_even_split_p_value(losses, wins) if decided else np.nan,
    )


def _sides(found: list[GroupStatistics]) -> _Sides:
    baseline, candidate = found
    nothing = difference(np.nan, np.array([]), questions=0)
    apart = nothing if candidate.paired is None else candidate.paired.mean
    return {"baseline": baseline.mean, "candidate": candidate.mean, "difference": apart}


def _even_split_p_value(one: int, other: int) -> float:
    return float(scipy_stats().binomtest(one, one + other).pvalue) if one + other else 1.0


_ORDERS: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderStatistics:
    """A judge's verdicts on pairs shown in both orders.

    Attributes:
        pairs: Number of pairs with a verdict in both orders.
        consistent: Number of pairs with the same winner, or a tie, in both orders.
        consistency: Share of consistent pairs, 0 to 1.
        position_bias: Share of verdicts for the answer shown first minus share for the answer shown second, -1 to 1. 0
            means no bias.
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
    """Return a judge's consistency between orders, or None if no pair has a verdict in both orders.

    Args:
        orders: Each pair's verdict in each order. `first` names the answer shown first. `winner` names the better
            answer, or is "tie" for a tie and None without a verdict.
        questions: Each pair's question number, as in `GroupedRows`. Whole questions are drawn.
        strata: Each question's data set number, as in `GroupedRows`.
        resamples: Number of draws.
        seed: Seed for the draws.
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
    """Return 1 if the answer shown first won, -1 if this answer lost, and 0 for a tie."""
    if order["winner"] == "tie":
        return 0.0
    return 1.0 if order["winner"] == order["first"] else -1.0
