"""Compares two lists of results, as `Client.score` gives them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from gradewire_stats.comparison.groups import RESAMPLES
from gradewire_stats.comparison.paired_rows import TIE_MARGIN, PairedRows, ScoredAnswer, TieMargin
from gradewire_stats.comparison.pairs import PairComparison, compare_pairs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class ScoredItem(Protocol):
    """Scores of one item by metric, for instance an `ItemScores` of the client."""

    @property
    def id(self) -> str:
        """The item's id as its caller gave it, or ""."""

    @property
    def scores(self) -> Mapping[str, ScoredAnswer]:
        """One answer of each metric, by label."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowColumns:
    """What tells the items of two runs apart; empty where nothing does.

    Attributes:
        questions: Key of each item's question, for those that several items ask: they are drawn together. Without it
            each item is a question of its own.
        datasets: Data set of each item: questions are drawn within it. Without it there is one.
        groups: Group of each item, to have the figures of each group too; "" is none.
    """

    questions: Sequence[str] = ()
    datasets: Sequence[str] = ()
    groups: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunComparison:
    """Two runs beside each other.

    Attributes:
        overall: On all questions.
        groups: On the questions of each group, in the order in which they come first; empty where none are told apart.
    """

    overall: PairComparison
    groups: Mapping[str, PairComparison]


def compare_results(  # noqa: PLR0913 - what tells rows apart, and how figures are drawn
    baseline: Sequence[ScoredItem],
    candidate: Sequence[ScoredItem],
    *,
    columns: RowColumns | None = None,
    tie_margin: TieMargin = TIE_MARGIN,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> RunComparison:
    """The figures of `gradewire compare`: what a candidate gains or loses against a baseline.

    Args:
        baseline: Results of one run; a `ScoreReport` is such a sequence.
        candidate: Those of the other, of the same questions in the same order.
        columns: What tells items apart; None: each is a question of its own, and there is one data set and no group.
        tie_margin: Scores that differ by this much or less are a tie, in units of the score; `verdict`: answers with
            the same verdict are.
        resamples: Draws behind the intervals.
        seed: Same seed, same intervals.

    Returns:
        Figures of every metric that both have, by label.

    Raises:
        ValueError: The two are not of the same questions, or share no metric; or a sequence is not as long as they are.
        MissingScipyError: scipy is not installed.
    """
    columns = columns or RowColumns()
    _check(baseline, candidate, columns)
    labels = [label for label in baseline[0].scores if label in candidate[0].scores]
    if not labels:
        raise ValueError(
            f"the results share no metric: {', '.join(baseline[0].scores)} and {', '.join(candidate[0].scores)}"
        )
    blank = [""] * len(baseline)
    results = {
        label: [(one.scores[label], two.scores[label]) for one, two in zip(baseline, candidate, strict=True)]
        for label in labels
    }
    keys, sets = columns.questions or blank, columns.datasets or blank
    rows = PairedRows.from_results(results, keys, sets, tie_margin=tie_margin)
    members: dict[str, list[int]] = {}
    for place, name in enumerate(columns.groups):
        if name:
            members.setdefault(name, []).append(place)
    return RunComparison(
        overall=compare_pairs(rows, resamples=resamples, seed=seed),
        groups={
            name: compare_pairs(rows.at(np.array(where)), resamples=resamples, seed=seed)
            for name, where in members.items()
        },
    )


def _check(baseline: Sequence[ScoredItem], candidate: Sequence[ScoredItem], columns: RowColumns) -> None:
    if not baseline or len(baseline) != len(candidate):
        raise ValueError(
            f"baseline has {len(baseline)} results and candidate {len(candidate)}: give those of the same questions"
        )
    for name, values in asdict(columns).items():
        if values and len(values) != len(baseline):
            raise ValueError(f"{name} has {len(values)} values for {len(baseline)} results")
    for place, (one, other) in enumerate(zip(baseline, candidate, strict=True)):
        if one.id and other.id and one.id != other.id:
            raise ValueError(
                f"result {place} is of {one.id!r} in baseline and of {other.id!r} in candidate: give them in one order"
            )
        if one.scores.keys() != baseline[0].scores.keys() or other.scores.keys() != candidate[0].scores.keys():
            raise ValueError(f"result {place} has other metrics than the first")
