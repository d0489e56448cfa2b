"""What a run of `compare` finds, computed once for tables, JSON and page."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gradewire.cli.compare.changed import Changed, most_changed
from gradewire.cli.compare.manifests import differences, unlike_metrics
from gradewire.cli.input.grouping import written
from gradewire.cli.run.labelled_run import described_draws
from gradewire.comparison import PairComparison, PairedRows, compare_pairs
from gradewire.comparison.order_figures import OrderFigures, order_figures

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gradewire.cli.choosing.choosers import Chooser, Chosen
    from gradewire.cli.compare.input.matching import Matching
    from gradewire.cli.compare.manifests import ManifestDifference, SideManifest
    from gradewire.cli.input.grouping import Grouping
    from gradewire.comparison.preferences import TieMargin

# A column of ids makes as many groups as rows, of which no interval can be told.
MOST_GROUPS = 200
_PREFERRED = {"model_b": 1.0, "model_a": -1.0, "tie": 0.0, None: np.nan}


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """How figures are drawn.

    Attributes:
        tie_margin: Of metrics as choosers.
        resamples: Draws of the bootstrap.
        seed: Of these draws.
        changed: Rows that are told of those that changed most, in either direction.
    """

    tie_margin: TieMargin
    resamples: int
    seed: int
    changed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupedFigures:
    """Figures by the values of columns.

    Attributes:
        columns: What is told apart, by the baseline's rows, else the candidate's.
        groups: By the values, in the order of the files.
        outside: Pairs without one of the values.
        left_out: Groups that are too many to have figures; 0 where all have.
    """

    columns: Grouping
    groups: Mapping[tuple[str, ...], PairComparison]
    outside: int
    left_out: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SideComparison:
    """A candidate beside the baseline.

    Attributes:
        matching: Its rows and those of the baseline.
        chosen: Its pairs, with what the chooser says of them.
        overall: Figures of all pairs.
        groups: Figures of groups, for each grouping.
        changed: Rows that changed most, by label of the metric.
        differences: In what the manifests differ.
        unlike: Metrics of different definitions on both sides.
        orders: How far a judge means what it says in both orders; None for a chooser that is shown none.
    """

    matching: Matching
    chosen: Sequence[Chosen]
    overall: PairComparison
    groups: Sequence[GroupedFigures]
    changed: Mapping[str, Changed]
    differences: Sequence[ManifestDifference]
    unlike: Sequence[str]
    orders: OrderFigures | None

    @property
    def baseline(self) -> str:
        """Name of the baseline."""
        return self.matching.baseline.name

    @property
    def candidate(self) -> str:
        """Name of the candidate."""
        return self.matching.candidate.name

    @property
    def unmatched(self) -> float:
        """Share of the baseline's rows that have no partner, 0 to 1."""
        return len(self.matching.only_baseline) / len(self.matching.baseline.rows)

    @property
    def statuses(self) -> Mapping[str, int]:
        """Pairs by what became of the choice."""
        return Counter(str(choice.status) for _, choice in self.chosen)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareResult:
    """All sides.

    Attributes:
        chooser: Its name, and what its choices depend on.
        manifests: By name of the side, the baseline first.
        sides: The candidates.
        drawing: How figures were drawn.
        notes: What is left out, in sentences.
    """

    chooser: str
    identity: Mapping[str, Any]
    manifests: Mapping[str, SideManifest]
    sides: Sequence[SideComparison]
    drawing: Drawing
    notes: Sequence[str]


def compare_side(  # noqa: PLR0913, PLR0917 - what is compared, and how
    matching: Matching,
    chosen: Sequence[Chosen],
    chooser: Chooser,
    manifests: Mapping[str, SideManifest],
    groupings: Sequence[Grouping],
    drawing: Drawing,
) -> SideComparison:
    """Computes all figures of a candidate."""
    pairs = [pair for pair, _ in chosen]
    labels = [label for label in pairs[0].a.results if label in pairs[0].b.results]
    results = {label: [(pair.a.results[label], pair.b.results[label]) for pair in pairs] for label in labels}
    own = np.array([_PREFERRED[choice.winner] for _, choice in chosen])
    rows = PairedRows.of(
        results,
        [pair.a.row.question_key for pair in pairs],
        [pair.a.row.dataset for pair in pairs],
        tie_margin=drawing.tie_margin,
        preferred={chooser.name: own},
    )
    baseline, candidate = (manifests[side.name] for side in (matching.baseline, matching.candidate))
    return SideComparison(
        matching=matching,
        chosen=chosen,
        overall=compare_pairs(rows, resamples=drawing.resamples, seed=drawing.seed),
        groups=[_grouped(chosen, rows, grouping, drawing) for grouping in groupings],
        changed={label: most_changed(pairs, label, most=drawing.changed) for label in labels},
        differences=differences(baseline, candidate),
        unlike=unlike_metrics(baseline, candidate),
        orders=order_figures(
            [choice.orders for _, choice in chosen],
            rows.questions,
            rows.strata,
            resamples=drawing.resamples,
            seed=drawing.seed,
        ),
    )


def _grouped(chosen: Sequence[Chosen], rows: PairedRows, grouping: Grouping, drawing: Drawing) -> GroupedFigures:
    members: dict[tuple[str, ...], list[int]] = {}
    outside = 0
    for place, (pair, _) in enumerate(chosen):
        values = tuple(
            next((value for row in (pair.a.row, pair.b.row) if (value := row.grouping.get(column, ""))), "")
            for column in grouping
        )
        if all(values):
            members.setdefault(values, []).append(place)
        else:
            outside += 1
    shown = members if len(members) <= MOST_GROUPS else {}
    return GroupedFigures(
        columns=grouping,
        groups={
            values: compare_pairs(rows.at(np.array(where)), resamples=drawing.resamples, seed=drawing.seed)
            for values, where in sorted(shown.items())
        },
        outside=outside,
        left_out=len(members) - len(shown),
    )


def document_of(found: CompareResult) -> dict[str, Any]:
    """All figures, as `write_json` takes them."""
    return {
        "baseline": found.sides[0].baseline,
        "chooser": {"name": found.chooser, **found.identity},
        "tie_margin": found.drawing.tie_margin,
        "bootstrap": described_draws(found.drawing.resamples, found.drawing.seed, unit="question"),
        "sides": dict(found.manifests),
        "comparisons": {side.candidate: _side_document(side) for side in found.sides},
        "notes": list(found.notes),
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
                for direction, rows in (("gained", changed.gained), ("lost", changed.lost))
            }
            for label, changed in side.changed.items()
        },
        "manifest_differences": list(side.differences),
        "metrics_of_different_definitions": list(side.unlike),
    }
