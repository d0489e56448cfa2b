"""The result of `gradewire compare`, from which its tables, JSON document and HTML page are made."""

from __future__ import annotations

import heapq
from collections import Counter
from dataclasses import asdict, dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from gradewire_cli.compare.earlier_outputs import ManifestDifference, SideManifest, differences, differing_metrics
from gradewire_cli.options.common import Grouping, written
from gradewire_cli.scoring.choosers import DrawsOver, text_of_question
from gradewire_cli.scoring.labelled_run import Draws, described_draws
from gradewire_stats.comparison import PairComparison, PairedRows, compare_pairs
from gradewire_stats.comparison.pairs import OrderStatistics, order_statistics

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gradewire_cli.compare.sides import Matching
    from gradewire_cli.rows.row import Row
    from gradewire_cli.scoring.pair_engine import AnswerPair, Chooser, Chosen
    from gradewire_stats.comparison.paired_rows import TieMargin


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedRow:
    """A pair of answers with different scores. A field that the files lack is "".

    Attributes:
        baseline_correct, candidate_correct: The metric's verdicts, or None if the metric returns no verdict.
    """

    id: str
    dataset: str
    question: str
    references: Sequence[str]
    baseline_answer: str
    candidate_answer: str
    baseline_score: float
    candidate_score: float
    baseline_correct: bool | None
    candidate_correct: bool | None

    @property
    def difference(self) -> float:
        """The candidate's score minus the baseline's score."""
        return self.candidate_score - self.baseline_score


def most_changed(pairs: Iterable[AnswerPair], label: str, *, most: int) -> dict[str, Sequence[ChangedRow]]:
    """Return the rows with the largest rise ("gained") and the largest fall ("lost") in a metric's score.

    Each list has up to `most` rows, largest changes first. Rows with equal changes stay in file order.
    """
    rows = [row for pair in pairs if (row := _changed_row(pair, label)) is not None]
    return {
        "gained": heapq.nlargest(most, (row for row in rows if row.difference > 0), key=attrgetter("difference")),
        "lost": heapq.nsmallest(most, (row for row in rows if row.difference < 0), key=attrgetter("difference")),
    }


def _changed_row(pair: AnswerPair, label: str) -> ChangedRow | None:
    before, after = pair.a.results[label], pair.b.results[label]
    if before.score is None or after.score is None:
        return None
    return ChangedRow(
        id=pair.id,
        dataset=pair.a.row.dataset,
        question=pair.a.text("question"),
        references=pair.a.texts("references"),
        baseline_answer=pair.a.text("prediction"),
        candidate_answer=pair.b.text("prediction"),
        baseline_score=before.score,
        candidate_score=after.score,
        baseline_correct=before.correct,
        candidate_correct=after.correct,
    )


# Maximum number of groups. More groups, e.g. from a column of ids, are too small for intervals.
MOST_GROUPS = 200
_PREFERRED = {"model_b": 1.0, "model_a": -1.0, "tie": 0.0, None: np.nan}


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """Settings of the statistics.

    Attributes:
        changed: Number of changed rows to show in each direction.
        draws_over: Units of the bootstrap draws.
    """

    tie_margin: TieMargin
    resamples: int
    seed: int
    changed: int
    draws_over: DrawsOver = "instructions"

    def unit_of(self, row: Row) -> tuple[str, str]:
        """Return a row's stratum, and a key that rows of a stratum share if draws take them together.

        The stratum is the data set, but texts have no strata, because several data sets may have the same text.
        """
        if self.draws_over == "texts":
            return "", text_of_question(row) or row.question_key
        return row.dataset, row.question_key

    @property
    def draws(self) -> Draws:
        """Arguments of the bootstrap."""
        return {"resamples": self.resamples, "seed": self.seed}


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupedStatistics:
    """Values by group.

    Attributes:
        outside: Number of pairs that have no value in one of the columns.
        left_out: Number of groups if there are too many groups to compute values, otherwise 0.
    """

    columns: Grouping
    groups: Mapping[tuple[str, ...], PairComparison]
    outside: int
    left_out: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SideComparison:
    """A candidate compared with the baseline.

    Attributes:
        orders: The judge's consistency between the two orders of a pair. None if the chooser is a metric.
    """

    matching: Matching
    chosen: Sequence[Chosen]
    overall: PairComparison
    groups: Sequence[GroupedStatistics]
    changed: Mapping[str, Mapping[str, Sequence[ChangedRow]]]
    differences: Sequence[ManifestDifference]
    differing_metrics: Sequence[str]
    orders: OrderStatistics | None

    @property
    def baseline(self) -> str:
        """The baseline's name."""
        return self.matching.baseline.name

    @property
    def candidate(self) -> str:
        """The candidate's name."""
        return self.matching.candidate.name

    @property
    def statuses(self) -> Mapping[str, int]:
        """Number of pairs by the status of the chooser's verdict."""
        return Counter(str(choice.status) for _, choice in self.chosen)

    @property
    def without_winner(self) -> Mapping[str, Sequence[str]]:
        """Ids of pairs for which the chooser has neither a winner nor a tie, by status. Statistics leave them out."""
        found: dict[str, list[str]] = {}
        for pair, choice in self.chosen:
            if choice.winner is None:
                found.setdefault(str(choice.status), []).append(pair.id)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareResult:
    """The result of a comparison.

    Attributes:
        identity: The chooser's settings, which a user needs to reproduce the result.
        manifests: Manifests by side, baseline first.
    """

    chooser: str
    identity: Mapping[str, Any]
    manifests: Mapping[str, SideManifest]
    sides: Sequence[SideComparison]
    drawing: Drawing
    notes: Sequence[str]


def compare_side(  # noqa: PLR0913, PLR0917 - the pairs, the chooser and the settings
    matching: Matching,
    chosen: Sequence[Chosen],
    chooser: Chooser,
    manifests: Mapping[str, SideManifest],
    groupings: Sequence[Grouping],
    drawing: Drawing,
) -> SideComparison:
    """Compare a candidate with the baseline."""
    pairs = [pair for pair, _ in chosen]
    labels = [label for label in pairs[0].a.results if label in pairs[0].b.results]
    results = {label: [(pair.a.results[label], pair.b.results[label]) for pair in pairs] for label in labels}
    units = [drawing.unit_of(pair.a.row) for pair in pairs]
    own = np.array([_PREFERRED[choice.winner] for _, choice in chosen])
    rows = PairedRows.from_results(
        results,
        [key for _, key in units],
        [stratum for stratum, _ in units],
        tie_margin=drawing.tie_margin,
        preferred={chooser.name: own},
    )
    baseline, candidate = (manifests[side.name] for side in (matching.baseline, matching.candidate))
    return SideComparison(
        matching=matching,
        chosen=chosen,
        overall=compare_pairs(rows, **drawing.draws),
        groups=[_grouped(chosen, rows, grouping, drawing) for grouping in groupings],
        changed={label: most_changed(pairs, label, most=drawing.changed) for label in labels},
        differences=differences(baseline, candidate),
        differing_metrics=differing_metrics(baseline, candidate),
        orders=order_statistics([choice.orders for _, choice in chosen], rows.questions, rows.strata, **drawing.draws),
    )


def _grouped(chosen: Sequence[Chosen], rows: PairedRows, grouping: Grouping, drawing: Drawing) -> GroupedStatistics:
    members: dict[tuple[str, ...], list[int]] = {}
    outside = 0
    for place, (pair, _) in enumerate(chosen):
        a, b = pair.a.row.grouping, pair.b.row.grouping
        values = tuple(a.get(column, "") or b.get(column, "") for column in grouping)
        if all(values):
            members.setdefault(values, []).append(place)
        else:
            outside += 1
    shown = members if len(members) <= MOST_GROUPS else {}
    return GroupedStatistics(
        columns=grouping,
        groups={
            values: compare_pairs(rows.at(np.array(where)), **drawing.draws) for values, where in sorted(shown.items())
        },
        outside=outside,
        left_out=len(members) - len(shown),
    )


def document_of(result: CompareResult) -> dict[str, Any]:
    """Return the result as a JSON document."""
    unit = "question" if result.drawing.draws_over == "instructions" else "text"
    return {
        "baseline": result.sides[0].baseline,
        "chooser": {"name": result.chooser, **result.identity},
        "tie_margin": result.drawing.tie_margin,
        "bootstrap": described_draws(result.drawing.resamples, result.drawing.seed, unit=unit),
        "sides": dict(result.manifests),
        "comparisons": {side.candidate: _side_document(side) for side in result.sides},
        "notes": list(result.notes),
    }


def _side_document(side: SideComparison) -> dict[str, Any]:
    matching = side.matching
    return {
        "pairs": side.overall.pairs,
        "matched_by": matching.rule,
        "unmatched": {
            side.baseline: [row.id for row in matching.only_baseline],
            side.candidate: [row.id for row in matching.only_candidate],
        },
        "repeated": [row.id for row in matching.repeated],
        "pairs_with_other_references": matching.other_references,
        "choices": dict(side.statuses),
        "without_winner": dict(side.without_winner),
        "metrics": side.overall.metrics,
        "outcomes": side.overall.outcomes,
        **({"orders": side.orders} if side.orders is not None else {}),
        "groups": {
            written(grouped.columns): {
                "without_value": grouped.outside,
                "left_out": grouped.left_out,
                "groups": [
                    {"values": list(values), "pairs": of.pairs, "metrics": of.metrics, "outcomes": of.outcomes}
                    for values, of in grouped.groups.items()
                ],
            }
            for grouped in side.groups
        },
        "changed": {
            label: {
                direction: [{**asdict(row), "difference": row.difference} for row in rows]
                for direction, rows in changed.items()
            }
            for label, changed in side.changed.items()
        },
        "manifest_differences": list(side.differences),
        "metrics_of_different_definitions": list(side.differing_metrics),
    }
