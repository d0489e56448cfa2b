"""Figures of all groups of a run, as tables and as JSON."""

from __future__ import annotations

import itertools
import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from gradewire.cli.input.grouping import written
from gradewire.cli.output.figures import Figure, count, differing, estimated, measured
from gradewire.cli.output.tables import FigureTable
from gradewire.errors import MissingExtra

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gradewire.cli.input.files import InputFile
    from gradewire.cli.score.by.collected import GroupColumn, GroupedScores, Tally
    from gradewire.comparison import GroupFigures

# A column of ids makes as many groups as rows: the JSON has them all.
SHOWN_GROUPS = 60


@dataclass(frozen=True, slots=True)
class MetricLine:
    """One metric on one group.

    Attributes:
        group: The values of the group.
        tally: Counts and means.
        figures: Intervals and the difference from the baseline; None where numpy is not installed.
    """

    group: tuple[str, ...]
    tally: Tally
    figures: GroupFigures | None


@dataclass(frozen=True, slots=True)
class Breakdown:
    """One grouping: every metric on every group, the baseline's groups first, the others by name.

    Attributes:
        columns: What is told apart.
        outside: Rows without one of the values: they are in no line.
        lines: By label of the metric.
        unknown_baseline: What was to be compared with and is no group; None where it is one.
        asked: Whether --by names the columns; official files are told by their types unasked.
    """

    columns: tuple[str, ...]
    outside: int
    lines: dict[str, list[MetricLine]]
    unknown_baseline: str | None
    asked: bool

    def document(self) -> dict[str, Any]:
        """By value (of one column within the other) and label, as `write_json` takes it."""
        nested: dict[str, Any] = {}
        for label, lines in self.lines.items():
            for line in lines:
                inner = nested
                for value in line.group:
                    inner = inner.setdefault(value, {})
                inner[label] = _line_document(line)
        return nested

    def tables(self) -> Iterator[FigureTable]:
        """A table for each metric."""
        for label, lines in self.lines.items():
            yield _table(f"{label} by {' and '.join(self.columns)}", self.columns, lines[:SHOWN_GROUPS])

    def notes(self) -> Iterator[str]:
        """What the tables leave out."""
        lines = next(iter(self.lines.values()), [])
        by = written(self.columns)
        if self.outside:
            yield f"by {by}: {self.outside} rows have no {' or no '.join(self.columns)} and are in no line"
        if self.unknown_baseline is not None:
            named = f"--baseline {self.unknown_baseline} as its {self.columns[0]}"
            yield f"by {by}: no row has {named}: compared with the first"
        if len(lines) > SHOWN_GROUPS:
            yield f"by {by}: {SHOWN_GROUPS} of {len(lines)} groups are shown; --summary-json has all"
        compared = [line for line in lines if line.figures is not None]
        if self.asked and len(compared) > 1 and all(line.figures and line.figures.paired is None for line in compared):
            yield f"by {by}: no question was answered in two groups, so there are no paired differences"


def check_comparable(source: InputFile) -> None:
    """Refuses --by before anything is scored where its intervals cannot be computed.

    The types of official files, for which nobody asked, are told without intervals then.

    Raises:
        MissingExtra: numpy is not installed.
    """
    if source.groupings_asked:
        import gradewire.comparison  # noqa: F401, PLC0415 - slow, and not needed by most runs


def breakdowns(collected: GroupedScores, baseline: str | None, *, asked: bool) -> list[Breakdown]:
    """Figures of every grouping; where no group has the baseline as its first value, against the first group."""
    return [_breakdown(collected, column, baseline, asked=asked) for column in collected.columns]


def _breakdown(collected: GroupedScores, column: GroupColumn, baseline: str | None, *, asked: bool) -> Breakdown:
    names = list(column.numbers)
    there = dict.fromkeys(name[0] for name in names)
    first = baseline if baseline in there else next(iter(there), None)
    order = sorted(range(len(names)), key=lambda number: (names[number][0] != first, names[number]))
    found = _figures(collected, column, first)
    lines = {
        label: [
            MetricLine(names[number], column.tallies[number][label], found[label][number] if found else None)
            for number in order
        ]
        for label in collected.scores
    }
    # The rows are scored: a name that was misspelt costs no figures.
    unknown = baseline if baseline is not None and first != baseline else None
    return Breakdown(column.grouping, column.outside, lines, unknown, asked)


def _figures(
    collected: GroupedScores, column: GroupColumn, baseline: str | None
) -> dict[str, list[GroupFigures]] | None:
    try:
        from gradewire.comparison import GroupedRows, compare_groups  # noqa: PLC0415 - numpy is optional here
    except MissingExtra:
        return None
    rows = GroupedRows.of(
        collected.scores, column.groups, list(column.numbers), collected.questions, collected.datasets
    )
    return compare_groups(rows, baseline=baseline)


def _line_document(line: MetricLine) -> dict[str, Any]:
    tally, figures = line.tally, line.figures
    mean = {"rows": tally.rows, "scored": tally.scored, "mean": tally.mean}
    rest = {
        "accuracy": tally.share_right,
        "parts": tally.part_means,
        "statuses": dict(tally.statuses),
        "shares_without_score": tally.shares_without_score,
    }
    if figures is None:
        return {**mean, **rest}
    paired = figures.paired
    difference = None
    if paired is not None:
        difference = {"baseline": list(paired.baseline), "shared_questions": paired.questions, **asdict(paired.mean)}
    interval = None if math.isnan(figures.mean.low) else [figures.mean.low, figures.mean.high]
    return {**mean, "interval_95": interval, **rest, "difference": difference}


def _table(title: str, columns: Sequence[str], lines: Sequence[MetricLine]) -> FigureTable:
    parts = list(dict.fromkeys(name for line in lines for name in line.tally.parts))
    paired = [line.figures.paired for line in lines if line.figures is not None and line.figures.paired is not None]
    baseline = paired[0].baseline[0] if paired else ""
    judged = any(line.tally.verdicts for line in lines)
    heads = ["rows", "scored", "mean", *([f"minus {baseline}", "on questions"] if paired else [])]
    failed = any(line.tally.scored < line.tally.rows for line in lines)
    heads += [*(["right"] if judged else []), *parts, *(["without score"] if failed else [])]
    return FigureTable(
        title,
        [*columns, *heads],
        [
            [*line.group, *itertools.islice(_cells(line, parts, paired=bool(paired), judged=judged), len(heads))]
            for line in lines
        ],
        heads=len(columns),
    )


def _cells(line: MetricLine, parts: Sequence[str], *, paired: bool, judged: bool) -> Iterator[Figure]:
    tally, figures = line.tally, line.figures
    yield count(tally.rows)
    yield count(tally.scored)
    yield measured(tally.mean) if figures is None else estimated(figures.mean)
    if paired:
        difference = figures.paired if figures is not None else None
        yield Figure("") if difference is None else differing(difference.mean)
        yield Figure("") if difference is None else count(difference.questions)
    if judged:
        yield measured(tally.share_right)
    means = tally.part_means
    for name in parts:
        yield measured(means.get(name, math.nan))
    yield Figure(", ".join(f"{share:.1%} {status}" for status, share in tally.shares_without_score.items()) or "none")
