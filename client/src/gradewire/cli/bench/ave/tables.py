"""AVE's figures as tables like the paper's, and why a figure is missing."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from gradewire.cli.bench.ave.file import PARTS
from gradewire.tables import Table, count, differing, estimated, measured

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gradewire.agreement.papers.ave import AveDifferences, AveProperties
    from gradewire.agreement.papers.ave_figures import AveRows
    from gradewire.cli.bench.ave.run import AveScores

_NO_DATASET = "(none)"
# AVE has four. A file has as many as it likes, and calls them as it likes.
_SHOWN_DATASETS = 20
_NAME_CHARACTERS = 40


def ave_tables(
    found: Mapping[str, AveProperties], gains: Mapping[str, AveDifferences], baseline: str | None
) -> Iterator[Table]:
    """The table of the paper, alignments by data set, and the gains over a baseline where there is one."""
    headline, *differences = ave_headline(found, gains, baseline)
    yield headline
    yield _by_dataset(found)
    yield from differences


def ave_headline(
    found: Mapping[str, AveProperties], gains: Mapping[str, AveDifferences], baseline: str | None
) -> Iterator[Table]:
    """As `ave_tables`, without the data sets."""
    yield Table(
        "Alignment with people (Spearman by part, and their mean), consistency, generalization",
        ["evaluator", *(f"part {part}" for part in PARTS), "alignment", "consistency", "generalization"],
        [
            [
                label,
                *(estimated(part) for part in each.parts),
                *(estimated(figure) for figure in (each.alignment, each.consistency, each.generalization)),
            ]
            for label, each in found.items()
        ],
    )
    if gains:
        yield Table(
            f"Difference from {baseline}, on the scores that both have",
            ["evaluator", *(f"part {part}" for part in PARTS), "alignment", "consistency", "consistency / spread"],
            [
                [
                    label,
                    *(differing(part) for part in gain.parts),
                    *(differing(each) for each in (gain.alignment, gain.consistency, gain.relative_consistency)),
                ]
                for label, gain in gains.items()
            ],
        )


def _by_dataset(found: Mapping[str, AveProperties]) -> Table:
    datasets = list(dict.fromkeys(name for each in found.values() for name in each.datasets))[:_SHOWN_DATASETS]
    return Table(
        "Alignment by data set, consistency of scores divided by their spread, samples",
        ["evaluator", *map(_named, datasets), "consistency / spread", "samples", "failed by part"],
        [
            [
                label,
                *(measured(each.datasets.get(name, math.nan)) for name in datasets),
                estimated(each.relative_consistency),
                count(each.samples),
                " ".join(map(str, each.failed)),
            ]
            for label, each in found.items()
        ],
    )


def ave_notes(scores: AveScores, found: Mapping[str, AveProperties]) -> Iterator[str]:
    """What each evaluator is, what failed, and why a figure is missing."""
    yield from (tally.told(label) for label, tally in scores.tallies.items())
    every = next(iter(scores.rows.values()))
    if len(every.labels) and every.labels.min() == every.labels.max():
        yield f"no alignment: all {len(every.labels)} samples have the grade {every.labels[0]:g}"
    elif len(set(every.datasets)) < 2:
        yield "no generalization: there is one data set (column dataset), and it is the variance between several"
    for label, each in found.items():
        for part, why in _undefined(scores.rows[label], each):
            yield f"{label} has no figure for part {part}: {why}"
        silent = [name for name, aligned in each.datasets.items() if math.isnan(aligned)]
        if silent and not math.isnan(each.alignment.value) and len(each.datasets) > 1:
            others = f" and {len(silent) - 1} more" if len(silent) > 1 else ""
            why = f"all scores or grades of a part are alike in {_named(silent[0])}{others}"
            yield f"{label} has no generalization: {why}"
    if (further := len(set(every.datasets)) - _SHOWN_DATASETS) > 0:
        yield f"{further} further data sets are in --json alone"


def _named(dataset: str) -> str:
    return (
        _NO_DATASET
        if not dataset
        else dataset
        if len(dataset) <= _NAME_CHARACTERS
        else f"{dataset[:_NAME_CHARACTERS]}…"
    )


def _undefined(rows: AveRows, found: AveProperties) -> Iterator[tuple[int, str]]:
    varied = len(rows.labels) and rows.labels.min() < rows.labels.max()
    for place, part in enumerate(PARTS):
        scored = rows.scores[~np.isnan(rows.scores[:, place]), place]
        if not len(scored):
            yield part, "no sample has a score there"
        elif varied and math.isnan(found.parts[place].value):
            equal = scored.min() == scored.max()
            yield part, f"all scores are {scored[0]:.4g}" if equal else "the samples scored there have one grade"
