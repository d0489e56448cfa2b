"""Compare two lists of results from `Client.score`."""

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
    """An item's scores by metric, for instance the client's `ItemScores`."""

    @property
    def id(self) -> str:
        """The ID that the caller gave the item, or ""."""

    @property
    def scores(self) -> Mapping[str, ScoredAnswer]:
        """Each metric's result, by label."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowColumns:
    """Columns that describe the items in two runs. Unknown columns are empty.

    Attributes:
        questions: Key of each item's question. Items with the same question are drawn together. If empty, every item
            has its own question.
        datasets: Each item's data set. Draws are stratified by data set. If empty, there is a single data set.
        groups: Each item's group, for separate comparisons, or "" for no group.
    """

    questions: Sequence[str] = ()
    datasets: Sequence[str] = ()
    groups: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunComparison:
    """A comparison of two runs.

    Attributes:
        groups: Comparison on each group's questions, in order of first occurrence. Empty if there are no groups.
    """

    overall: PairComparison
    groups: Mapping[str, PairComparison]


def compare_results(  # noqa: PLR0913 - two runs and four options
    baseline: Sequence[ScoredItem],
    candidate: Sequence[ScoredItem],
    *,
    columns: RowColumns | None = None,
    tie_margin: TieMargin = TIE_MARGIN,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> RunComparison:
    """Compare a candidate with a baseline, like `gradewire compare`.

    Args:
        baseline: Results of one run, for example a `ScoreReport`.
        candidate: Results of the other run, for the same questions in the same order.
        columns: Questions, data sets and groups. None means a question for each item, one data set, and no groups.
        tie_margin: See `TieMargin`.
        resamples: Number of draws.
        seed: Seed for the draws.

    Returns:
        A comparison for each metric that both runs have, by label.

    Raises:
        ValueError: The runs have different questions or no common metric, or columns differ in length.
        MissingScipyError: scipy is not installed.
    """
    columns = columns or RowColumns()
    _check(baseline, candidate, columns)
    labels = [label for label in baseline[0].scores if label in candidate[0].scores]
    if not labels:
        raise ValueError(
            f"the results have no common metric: {', '.join(baseline[0].scores)} and {', '.join(candidate[0].scores)}"
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
            f"{len(baseline)} baseline and {len(candidate)} candidate results differ in number. Use the same questions"
        )
    for name, values in asdict(columns).items():
        if values and len(values) != len(baseline):
            raise ValueError(f"{name} has {len(values)} values for {len(baseline)} results. Give one value per result")
    for place, (one, other) in enumerate(zip(baseline, candidate, strict=True)):
        if one.id and other.id and one.id != other.id:
            raise ValueError(
                f"result {place} is for {one.id!r} in baseline and for {other.id!r} in candidate. Use the same order"
            )
        if one.scores.keys() != baseline[0].scores.keys() or other.scores.keys() != candidate[0].scores.keys():
            raise ValueError(f"result {place} and the first result have different metrics")
