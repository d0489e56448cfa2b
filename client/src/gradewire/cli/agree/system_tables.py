"""Means of the models under test by each metric, and how alike metrics and people rank the models."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gradewire.agreement.papers.systems import LEAST_MODELS, MOST_MODELS
from gradewire.cli.output.interval_notes import PlacedEstimate
from gradewire.tables import Table, Value, estimated

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gradewire.agreement import Estimate
    from gradewire.agreement.papers.systems import SystemTable
    from gradewire.cli.run.accuracy_tables import People

CORRELATIONS = (("kendall", "tau-b"), ("spearman", "Spearman"), ("pearson", "Pearson"))


def system_figures(tables: Sequence[SystemTable], people: People) -> Iterator[Table]:
    """Means by model (rank of the model in brackets), then the correlations; `people` is who labelled the rows."""
    for table in tables:
        of = f" of {table.dataset}" if table.dataset else ""
        rows: list[list[Value | str]] = [[people.name, *_ranked(table.people)]]
        for line in table.lines:
            rows.append([line.metric, *_ranked(line.means)])
            # Where it scored all rows, the line of people is the one above.
            if line.failed:
                rows.append([f"{people.name}, rows of {line.metric}", *_ranked(line.people)])
        yield Table(f"Mean score by model{of} (rank)", ["", *table.models], rows)
    if len(tables) and len(tables[-1].models) >= LEAST_MODELS:
        several = len(tables) > 1
        fewest, most = (how(len(table.models) for table in tables) for how in (min, max))
        yield Table(
            f"System-level correlation with {people.several}: means of {_span(fewest, most)} models",
            ["metric", *(["data set"] if several else []), *(title for _, title in CORRELATIONS)],
            [
                [
                    line.metric,
                    *([table.dataset or "all rows"] if several else []),
                    *(estimated(getattr(line, name)) for name, _ in CORRELATIONS),
                ]
                for place in range(len(tables[-1].lines))
                for table in tables
                for line in [table.lines[place]]
            ],
            heads=1 + several,
        )


def _span(fewest: int, most: int) -> str:
    return f"{most}" if fewest == most else f"{fewest} to {most}"


def system_notes(tables: Sequence[SystemTable], models: int) -> Iterator[str]:
    """What the tables leave out; `models` is how many there are."""
    if models > MOST_MODELS:
        yield f"no means by model and no correlation at the system level: there are {models} models, over {MOST_MODELS}"
    if tables and len(tables[-1].models) < LEAST_MODELS:
        there = len(tables[-1].models)
        yield f"no rank correlation at the system level: there are {there} models, it takes {LEAST_MODELS}"


def system_intervals(tables: Sequence[SystemTable], people: People) -> Iterator[PlacedEstimate]:
    """All figures of the tables; `people` as in `system_figures`."""
    for table in tables:
        for model, mean in zip(table.models, table.people, strict=True):
            yield PlacedEstimate(people.name, "mean by model", f"{table.dataset} {model}".strip(), mean)
        for line in table.lines:
            for model, mean in zip(table.models, line.means, strict=True):
                yield PlacedEstimate(line.metric, "mean by model", f"{table.dataset} {model}".strip(), mean)
            for name, title in CORRELATIONS:
                yield PlacedEstimate(
                    line.metric, f"system-level {title}", table.dataset or "all rows", getattr(line, name)
                )


def _ranked(means: Sequence[Estimate]) -> Iterator[Value]:
    """Each mean with its rank, 1 the highest; equal ones share the better rank."""
    for mean in means:
        if math.isnan(mean.value):
            yield estimated(mean)
        else:
            yield estimated(mean).beside(str(1 + sum(other.value > mean.value for other in means)))
