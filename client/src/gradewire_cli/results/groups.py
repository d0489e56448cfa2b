"""Group a run's values for `gradewire score --group-by`."""

from __future__ import annotations

import math
from array import array
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from gradewire.errors import MissingExtra
from gradewire.intervals import mean_interval
from gradewire.results import Status
from gradewire_cli.options.common import Grouping, written
from gradewire_cli.problems import InputError
from gradewire_cli.results.tables import Table, Value, count, differing, estimated, measured, number
from gradewire_cli.results.tallies import MetricTally
from gradewire_cli.rows.formats import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from gradewire_cli.rows.input_file import InputFile
    from gradewire_cli.rows.row import Row
    from gradewire_stats.comparison import GroupStatistics, PairedDifference


# Result fields that repeat a setting. Their means say nothing, because answers share a setting.
_SETTINGS = frozenset({"band_lower", "band_upper"})
# A column of IDs makes one group per row, so tables show only the first groups.
SHOWN_GROUPS = 60
COMPARED_GROUPS = 1000
_SHOWN_NAMES = 10
MOST_MODELS = 20
"""Maximum number of models in the table that needs no --group-by."""


@dataclass(slots=True)
class GroupTally(MetricTally):
    """One metric's tally over a group's rows, with the sum and count of each float field."""

    parts: dict[str, tuple[float, int]] = field(default_factory=dict)

    def add(self, label: str, result: Mapping[str, Any], *, identifier: str, row: Row | None = None) -> None:
        """Count one result in an output row."""
        super(GroupTally, self).add(label, result, identifier=identifier, row=row)
        for name, value in result.items() if result["score"] is not None else ():
            if isinstance(value, float) and name != "score" and name not in _SETTINGS:
                total, count = self.parts.get(name, (0.0, 0))
                self.parts[name] = total + value, count + 1

    @property
    def part_means(self) -> dict[str, float]:
        """Mean of each float field over the rows that have the field."""
        return {name: total / count for name, (total, count) in self.parts.items()}

    @property
    def shares_without_score(self) -> dict[str, float]:
        """Share of the group's rows with each failure status."""
        return {status: count / self.rows for status, count in self.statuses.items() if status != Status.OK}


@dataclass(slots=True)
class GroupColumn:
    """The groups of one grouping. `groups` has each row's group index, or -1 if the row lacks a value."""

    grouping: Grouping
    numbers: dict[tuple[str, ...], int] = field(default_factory=dict)
    groups: array[int] = field(default_factory=lambda: array("i"))
    tallies: list[dict[str, GroupTally]] = field(default_factory=list)

    @property
    def outside(self) -> int:
        """Number of rows without a group."""
        return self.groups.count(-1)

    def add(self, row: Row, results: Mapping[str, Mapping[str, Any]]) -> None:
        """Count a row and its results. `results` contains the results by metric label."""
        values = tuple(row.grouping.get(column, "") for column in self.grouping)
        if not all(values):
            self.groups.append(-1)
            return
        number = self.numbers.setdefault(values, len(self.numbers))
        if number == len(self.tallies):
            self.tallies.append({})
        self.groups.append(number)
        for label, result in results.items():
            self.tallies[number].setdefault(label, GroupTally()).add(label, result, identifier=row.id)


@dataclass(slots=True)
class ModelScores:
    """Tallies by the rows' `model`, for the table that `score` shows without --group-by.

    Attributes:
        tallies: Each model's tallies by metric label, or None after more than `MOST_MODELS` models.
        outside: Number of rows without a model.
    """

    tallies: dict[str, dict[str, GroupTally]] | None = field(default_factory=dict)
    outside: int = 0

    def add(self, row: Row, output: Mapping[str, Any]) -> None:
        """Count a row and its output row."""
        if self.tallies is None:
            return
        if not row.model:
            self.outside += 1
            return
        tallies = self.tallies.setdefault(row.model, {})
        for label, result in output["scores"].items():
            tallies.setdefault(label, GroupTally()).add(label, result, identifier=row.id)
        if len(self.tallies) > MOST_MODELS:
            self.tallies = None  # a column of ids, or a leaderboard

    def breakdown(self) -> Breakdown | None:
        """Return the models with the best mean of the first metric first, or None unless there are 2 to 20 models."""
        if not self.tallies or len(self.tallies) < 2:
            return None
        first = next(iter(next(iter(self.tallies.values()))))
        means = {name: tallies[first].mean for name, tallies in self.tallies.items()}
        order = sorted(means, key=lambda name: (math.isnan(means[name]), -means[name], name))
        lines = {
            label: [_model_line(name, self.tallies[name][label]) for name in order] for label in self.tallies[order[0]]
        }
        return Breakdown(("model",), self.outside, lines, None, requested=False, shows_parts=False)


def _model_line(name: str, tally: GroupTally) -> GroupMetric:
    return GroupMetric((name,), tally, None, mean_interval(tally.scores))


@dataclass(slots=True)
class GroupedScores:
    """All groupings of a run.

    Attributes:
        scores: Each row's score by metric label. NaN means a missing score.
        questions: Each row's question index.
        datasets: Each question's data set index.
    """

    columns: Sequence[GroupColumn] = ()
    scores: dict[str, array[float]] = field(default_factory=dict)
    questions: array[int] = field(default_factory=lambda: array("i"))
    datasets: array[int] = field(default_factory=lambda: array("i"))
    _keys: dict[tuple[int, str], int] = field(default_factory=dict)
    _dataset_numbers: dict[str, int] = field(default_factory=dict)

    def add(self, row: Row, output: Mapping[str, Any]) -> None:
        """Count a row and its output row."""
        if not self.columns:
            return
        self.questions.append(self._question(row))
        for label, result in output["scores"].items():
            score = math.nan if result["score"] is None else result["score"]
            self.scores.setdefault(label, array("d")).append(score)
        for column in self.columns:
            column.add(row, output["scores"])

    def _question(self, row: Row) -> int:
        dataset = self._dataset_numbers.setdefault(row.dataset, len(self._dataset_numbers))
        number = len(self.datasets)
        if row.question_key:
            number = self._keys.setdefault((dataset, row.question_key), number)
        if number == len(self.datasets):
            self.datasets.append(dataset)
        return number


@dataclass(frozen=True, slots=True)
class GroupMetric:
    """One metric's values in one group.

    Attributes:
        statistics: Statistics that need numpy and a baseline. None without --group-by, with too many groups, or without
            numpy.
        interval: The mean's 95 % interval in place of `statistics`.
    """

    group: tuple[str, ...]
    tally: GroupTally
    statistics: GroupStatistics | None
    interval: tuple[float, float] | tuple[None, None] = (None, None)

    @property
    def mean(self) -> Value:
        """The mean, with its interval if it is known."""
        if self.statistics is not None:
            return estimated(self.statistics.mean)
        low, high = self.interval
        if low is None or high is None:
            return measured(self.tally.mean)
        return Value(number(self.tally.mean), self.tally.mean, low, high, bounds=(number(low), number(high)))


@dataclass(frozen=True, slots=True)
class Breakdown:
    """One grouping, with each metric's values in each group. The groups that contain the baseline come first.

    Attributes:
        outside: Number of rows that belong to no group.
        unknown_baseline: The requested baseline if no group has that name, otherwise None.
        requested: True for --group-by, False for official files' question types and for models.
        shows_parts: True if tables have the means of the scores' parts. The document always has them.
    """

    columns: Grouping
    outside: int
    lines: dict[str, list[GroupMetric]]
    unknown_baseline: str | None
    requested: bool
    shows_parts: bool = True

    def document(self) -> dict[str, Any]:
        """Return the values nested by group and label, for `write_json`."""
        nested: dict[str, Any] = {}
        for label, lines in self.lines.items():
            for line in lines:
                inner = nested
                for value in line.group:
                    inner = inner.setdefault(value, {})
                inner[label] = _line_document(line)
        return nested

    def tables(self) -> Iterator[Table]:
        """Yield a table for each metric, or nothing if there are no groups."""
        for label, lines in self.lines.items():
            if lines:
                yield self._table(label, lines[:SHOWN_GROUPS])

    def _table(self, label: str, lines: Sequence[GroupMetric]) -> Table:
        names = dict.fromkeys(name for line in lines for name in line.tally.parts) if self.shows_parts else ()
        shown = dict(_columns(lines, self.columns, names))
        return Table(
            f"{label} by {' and '.join(self.columns)}",
            [*self.columns, *shown],
            [[*line.group, *(cell(line) for cell in shown.values())] for line in lines],
            heads=len(self.columns),
        )

    def notes(self) -> Iterator[str]:
        """Yield notes, for example on rows and groups that the tables leave out."""
        lines = next(iter(self.lines.values()), [])
        by = written(self.columns)
        if self.outside:
            yield f"by {by}: {self.outside} rows have no {' or '.join(self.columns)} and are in no group"
        if self.unknown_baseline is not None:
            named = f"the {self.columns[compared_column(self.columns)]} {self.unknown_baseline} (--baseline)"
            yield f"by {by}: no row has {named}, so the first group is the baseline"
        if len(lines) > COMPARED_GROUPS:
            yield f"by {by}: there are more than {COMPARED_GROUPS} groups, so intervals and differences are missing"
        if len(lines) > SHOWN_GROUPS:
            yield f"by {by}: only {SHOWN_GROUPS} of {len(lines)} groups are shown. Use --summary-json to get all"
        compared = [line.statistics for line in lines if line.statistics is not None]
        if self.requested and len(compared) > 1 and all(each.paired is None for each in compared):
            yield f"by {by}: no paired differences, because no group shares a scored question with its baseline"
        if self.requested and compared:
            yield from (f"by {by}: {note}" for note in self._interval_notes())

    def _interval_notes(self) -> list[str]:
        from gradewire_cli.results.interval_notes import NamedEstimate, interval_notes  # noqa: PLC0415 - needs numpy

        estimates = []
        for label, lines in self.lines.items():
            for line in lines[:SHOWN_GROUPS]:
                if line.statistics is None:
                    continue
                group = " ".join(line.group)
                estimates.append(NamedEstimate(label, "mean", group, line.statistics.mean))
                if line.statistics.paired is not None:
                    estimates.append(NamedEstimate(label, "difference", group, line.statistics.paired.mean))
        return interval_notes(estimates)


def check_comparable(source: InputFile) -> None:
    """Raise MissingExtra if --group-by needs numpy for intervals and numpy is not installed.

    Official files' question types need no numpy.
    """
    if source.groupings_requested:
        try:
            import gradewire_stats.comparison  # noqa: F401, PLC0415 - slow, and not needed by most runs
        except ModuleNotFoundError as error:
            if error.name != "numpy":
                raise
            raise MissingExtra(str(error)) from error


def check_baseline(source: InputFile, baseline: str | None) -> None:
    """Read the files and raise the error of `require_baseline`. Standard input can be read only once, so skip it."""
    if baseline is None or source.is_stdin:
        return
    columns = [GroupColumn(grouping) for grouping in source.groupings]
    for row in source.open().rows:
        for column in columns:
            column.add(row, {})
    require_baseline(columns, baseline)


def require_baseline(columns: Sequence[GroupColumn], baseline: str | None) -> None:
    """Raise InputError if a baseline is requested, but no grouping has a group of this name."""
    known = list(dict.fromkeys(name[compared_column(each.grouping)] for each in columns for name in each.numbers))
    if baseline is None or baseline in known:
        return
    more = f" and {len(known) - _SHOWN_NAMES} more" if len(known) > _SHOWN_NAMES else ""
    listed = ", ".join(map(printable, known[:_SHOWN_NAMES])) + more
    way_out = f"Choose one of {listed}" if known else "No row is in a group, so leave it out"
    raise InputError(f"--baseline {baseline}: unknown name. {way_out}")


def breakdowns(collected: GroupedScores, baseline: str | None, *, requested: bool) -> list[Breakdown]:
    """Return each grouping's statistics, compared with the baseline (by default the first group).

    Groupings without a group are skipped unless `requested` is True.
    """
    columns = (column for column in collected.columns if requested or column.numbers)
    return [_breakdown(collected, column, baseline, requested=requested) for column in columns]


def _breakdown(collected: GroupedScores, column: GroupColumn, baseline: str | None, *, requested: bool) -> Breakdown:
    names, place = list(column.numbers), compared_column(column.grouping)
    there = dict.fromkeys(name[place] for name in names)
    first = baseline if baseline in there else next(iter(there), None)
    order = sorted(
        range(len(names)),
        key=lambda number: [(at == place and value != first, value) for at, value in enumerate(names[number])],
    )
    found = _group_statistics(collected, column, first)
    lines = {
        label: [
            GroupMetric(names[number], tally, found[label][number] if found and not tally.lacks_judge else None)
            for number in order
            for tally in (column.tallies[number][label],)
        ]
        for label in collected.scores
    }
    unknown = baseline if baseline is not None and first != baseline else None
    return Breakdown(column.grouping, column.outside, lines, unknown, requested)


def compared_column(grouping: Grouping) -> int:
    """Return the index of the column to compare by: "model" if it exists, else "file", else the first column."""
    return next((grouping.index(name) for name in ("model", "file") if name in grouping), 0)


def _group_statistics(
    collected: GroupedScores, column: GroupColumn, baseline: str | None
) -> dict[str, list[GroupStatistics]] | None:
    if len(column.numbers) > COMPARED_GROUPS:
        return None
    try:
        from gradewire_stats.comparison import GroupedRows, compare_groups  # noqa: PLC0415 - numpy is optional here
    except ModuleNotFoundError:
        return None
    rows = GroupedRows.of(
        collected.scores, column.groups, list(column.numbers), collected.questions, collected.datasets
    )
    return compare_groups(rows, baseline=baseline, column=compared_column(column.grouping))


def _line_document(line: GroupMetric) -> dict[str, Any]:
    tally, statistics = line.tally, line.statistics
    mean = {"rows": tally.rows, "scored": len(tally.scores), "mean": tally.mean}
    rest = {
        "mean_empty_as_wrong": tally.mean_empty_as_wrong,
        "share_right": tally.share_right,
        "parts": tally.part_means,
        "statuses": dict(tally.statuses),
        "shares_without_score": tally.shares_without_score,
    }
    if statistics is None:
        return {**mean, **({} if line.interval[0] is None else {"interval_95": list(line.interval)}), **rest}
    paired = statistics.paired
    difference = None
    if paired is not None:
        difference = {"baseline": list(paired.baseline), "shared_questions": paired.questions, **asdict(paired.mean)}
    interval = None if math.isnan(statistics.mean.low) else [statistics.mean.low, statistics.mean.high]
    return {**mean, "interval_95": interval, **rest, "difference": difference}


def _columns(
    lines: Sequence[GroupMetric], columns: Grouping, parts: Iterable[str]
) -> Iterator[tuple[str, Callable[[GroupMetric], Value]]]:
    tallies = [line.tally for line in lines]
    yield "rows", lambda line: count(line.tally.rows)
    yield "scored", lambda line: count(len(line.tally.scores))
    yield "mean", lambda line: line.mean
    if any(tally.statuses[Status.EMPTY_PREDICTION] for tally in tallies):
        yield "mean, empty wrong", lambda line: measured(line.tally.mean_empty_as_wrong)
    if baseline := next(
        (paired.baseline[compared_column(columns)] for line in lines if (paired := _paired(line)) is not None), ""
    ):
        yield f"minus {baseline}", lambda line: _of_paired(line, lambda paired: differing(paired.mean))
        yield "on questions", lambda line: _of_paired(line, lambda paired: count(paired.questions))
    if any(tally.verdicts for tally in tallies):
        yield "right", lambda line: measured(line.tally.share_right)
    for name in parts:
        yield name, lambda line, name=name: measured(line.tally.part_means.get(name, math.nan))  # type: ignore[misc]
    if any(len(tally.scores) < tally.rows for tally in tallies):
        yield "without score", lambda line: Value(_shares(line.tally) or "none")


def _paired(line: GroupMetric) -> PairedDifference | None:
    return None if line.statistics is None else line.statistics.paired


def _of_paired(line: GroupMetric, cell: Callable[[PairedDifference], Value]) -> Value:
    paired = _paired(line)
    return Value("") if paired is None else cell(paired)


def _shares(tally: GroupTally) -> str:
    return ", ".join(f"{share:.1%} {status}" for status, share in tally.shares_without_score.items())
