"""The sides of a comparison (files or models), and matching of rows that answer the same question."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

import click

from gradewire_cli.problems import InputError
from gradewire_cli.rows.files import GZIP
from gradewire_cli.rows.formats import printable
from gradewire_cli.scoring.pair_engine import Answer, Result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gradewire_cli.rows.row import Row


@dataclass(slots=True)
class Collected:
    """All rows with their results. A row needs about 2 kB of memory in addition to its texts.

    Attributes:
        lines: Metric identifiers by file and label. The file is "" if this run scores the rows.
        results: Results by `row.index` and label.
    """

    rows: Sequence[Row]
    lines: dict[str, Mapping[str, str]] = field(default_factory=dict)
    results: dict[int, Mapping[str, Result]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    has_synthetic: bool = False

    def answer(self, row: Row) -> Answer:
        """Return a row with its results."""
        return Answer(row, self.results.get(row.index, {}))

    def keep_only(self, labels: Sequence[str]) -> None:
        """Drop the results of other metrics.

        Raises:
            InputError: No row has results of one of the metrics.
        """
        there = list(dict.fromkeys(label for results in self.results.values() for label in results))
        if missing := [label for label in labels if label not in there]:
            shown = ", ".join(there) or "nothing"
            raise InputError(
                f"--metrics: the outputs have no {' or '.join(missing)}, but {shown}. Score the answers with these "
                "metrics, or leave --metrics out"
            )
        self.results = {
            index: {label: result for label, result in results.items() if label in labels}
            for index, results in self.results.items()
        }
        self.lines = {
            file: {label: line for label, line in lines.items() if label in labels}
            for file, lines in self.lines.items()
        }

    def lines_of(self, row: Row) -> Mapping[str, str]:
        """Return a map from the labels of a row's scores to the metric identifiers."""
        return self.lines.get(row.file, self.lines.get("", {}))


_SHOWN_MODELS = 20
MOST_SIDES = 100
"""Maximum number of sides. Each side adds a page of values, so a leaderboard is better for more models."""


@dataclass(frozen=True, slots=True)
class Side:
    """A model or run with its rows in file order."""

    name: str
    rows: Sequence[Row]

    @property
    def files(self) -> list[str]:
        """The side's files, or [] if one file contains the rows of all sides."""
        return list(dict.fromkeys(row.file for row in self.rows if row.file))


def check_names(paths: Sequence[str], models: Sequence[str], names: Sequence[str]) -> None:
    """Raise click.UsageError if --models or --names does not suit the number of files."""
    if models and names:
        raise click.UsageError("--names is for comparing files, and --models for comparing models. Leave one out")
    if names and len(names) != len(paths):
        raise click.UsageError(f"--names {','.join(names)}: name each of the {len(paths)} files exactly once")
    for option, given in (("--models", models), ("--names", names)):
        if repeated := [name for name, times in Counter(given).items() if times > 1]:
            raise click.UsageError(f"{option} {','.join(given)}: {repeated[0]} is named twice")
    if names and len(paths) == 1:
        raise click.UsageError("--names needs several files. Use --models to compare the models of one file")


def sides_of(
    rows: Sequence[Row], paths: Sequence[str], *, models: Sequence[str], names: Sequence[str], baseline: str | None
) -> tuple[list[Side], list[str]]:
    """Return the sides, with the baseline first, and sentences about omitted rows.

    Raises:
        InputError: There are fewer than two sides, or an option names an unknown side.
    """
    by_model = len(paths) == 1 or bool(models)
    sides, left_out = _by_model(rows, models) if by_model else (_by_file(rows, paths, names), [])
    if len(sides) < 2:
        there = f"{paths[0]} has " + (f"only rows of {sides[0].name}" if sides else "no column model with a value")
        raise InputError(
            f"{there}. Name two files, or one with a column model and at least two models (--map model=COLUMN)"
        )
    if len(sides) > MOST_SIDES:
        raise InputError(f"the file has {len(sides)} models, but the limit is {MOST_SIDES}. Choose some with --models")
    if baseline is not None:
        if baseline not in (known := [side.name for side in sides]):
            raise InputError(f"--baseline {baseline}: unknown name. Choose one of {_listed(known)}")
        sides.sort(key=lambda side: side.name != baseline)
    return sides, left_out


def _by_file(rows: Sequence[Row], paths: Sequence[str], names: Sequence[str]) -> list[Side]:
    members: dict[str, list[Row]] = {path: [] for path in paths}
    for row in rows:
        members[row.file].append(row)
    called = list(names) or _short_names(paths)
    for path in paths:
        if not members[path]:
            raise InputError(f"{path} has no rows")
    return [Side(name, members[path]) for name, path in zip(called, paths, strict=True)]


def _short_names(paths: Sequence[str]) -> list[str]:
    short = [Path(path.removesuffix(GZIP)).stem for path in paths]
    return short if len(set(short)) == len(paths) else list(paths)


def _by_model(rows: Sequence[Row], models: Sequence[str]) -> tuple[list[Side], list[str]]:
    members: dict[str, list[Row]] = {name: [] for name in models}
    nameless = 0
    for row in rows:
        if not row.model:
            nameless += 1
        elif row.model in members or not models:
            members.setdefault(row.model, []).append(row)
    if missing := [name for name in models if not members[name]]:
        known = list(dict.fromkeys(row.model for row in rows if row.model))
        raise InputError(f"--models {missing[0]}: no row has this model. The file has {_listed(known)}")
    left_out = [f"skipped {nameless} rows without a model"] if nameless else []
    return [Side(name, found) for name, found in members.items()], left_out


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN_MODELS} more" if len(names) > _SHOWN_MODELS else ""
    return ", ".join(map(printable, names[:_SHOWN_MODELS])) + more if names else "none"


Rule = Literal["auto", "id", "question", "row"]
RULES: tuple[Rule, ...] = get_args(Rule)
Duplicates = Literal["error", "first"]
DUPLICATES: tuple[Duplicates, ...] = get_args(Duplicates)
Key = tuple[str, str]

_SHOWN_ROWS = 5
_SHOWN_CHARACTERS = 60
_BY = {"id": "id", "question": "question", "row": "row number"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Matching:
    """The matched rows of a baseline and a candidate.

    Attributes:
        rule: The rule that matched the rows, never `auto`.
        pairs: Matched rows, in the baseline's order.
        repeated: Skipped rows. Each repeats the question of another row of the same side.
        other_references: Number of pairs with different references.
        other_questions: Number of pairs with different questions, which --match id allows.
        unchecked: Number of pairs that `auto` matched only by id or row number, because a row lacks its question and
            its references.
    """

    baseline: Side
    candidate: Side
    rule: Rule
    pairs: Sequence[tuple[Row, Row]]
    only_baseline: Sequence[Row]
    only_candidate: Sequence[Row]
    repeated: Sequence[Row]
    other_references: int
    other_questions: int
    unchecked: int = 0

    def notes(self) -> Iterator[str]:
        """Yield sentences on rows that are not compared, and on doubtful pairs."""
        one, other = self.baseline.name, self.candidate.name
        for name, rows, partner in ((one, self.only_baseline, other), (other, self.only_candidate, one)):
            if rows:
                yield f"{len(rows)} rows of {name} have no partner in {partner} and are not compared: {_named(rows)}"
        if self.repeated:
            named = _named(self.repeated)
            yield f"{len(self.repeated)} rows repeat a question of their side and are not compared: {named}"
        if self.other_references:
            yield (
                f"{self.other_references} pairs of {one} and {other} have different references. Each answer was scored "
                "against the references in its row"
            )
        if self.other_questions:
            yield f"{self.other_questions} pairs of {one} and {other} have the same id but different questions"
        if self.rule == "question" and any(row.has_id for side in (self.baseline, self.candidate) for row in side.rows):
            yield f"rows of {one} and {other} are matched by question, not by id"
        if self.rule == "row":
            yield f"rows of {one} and {other} are matched by row number, because they have neither ids nor questions"


def match(baseline: Side, candidate: Side, *, rule: Rule, duplicates: Duplicates) -> Matching:
    """Find the rows of two sides that answer the same question.

    The rule `auto` tries ids first. If ids match less than half of the rows and questions match more rows than ids,
    `auto` uses questions. Questions are equal if they have the same `question_id`, or the same text with the same image
    or references. If rows have neither ids nor questions, `auto` uses row numbers. If both sides name data sets, rows
    match only within a data set.

    Raises:
        InputError: No rows match, two rows of a side answer the same question, or `auto` matches ids but rows with the
            same id have different questions.
    """
    tried: tuple[Rule, ...] = ("id", "question", "row") if rule == "auto" else (rule,)
    with_datasets = all(any(row.dataset for row in side.rows) for side in (baseline, candidate))
    most, found = 0, None
    half = min(len(baseline.rows), len(candidate.rows)) / 2
    for name in tried:
        if found and (most >= half or name == "row"):
            break
        if name == "row" and rule == "auto" and any(map(_has_more_text, (*baseline.rows, *candidate.rows))):
            continue
        keys = _keys(name, with_datasets=with_datasets)
        before, after = ({key for row in side.rows if (key := keys(row)) is not None} for side in (baseline, candidate))
        if (shared := len(before & after)) > most:
            most, found = shared, (name, keys)
    if found is not None:
        matching = _matched(baseline, candidate, *found, duplicates)
        if rule != "auto":
            return replace(matching, unchecked=0)
        if matching.rule == "id":
            _check_questions(matching)
        return matching
    raise InputError(
        f"no row of {printable(candidate.name)} matches a row of {printable(baseline.name)} by id or question. If the "
        "sides answer the same questions, identify the questions with --map id=COLUMN or --map question_id=COLUMN"
        if rule == "auto"
        else f"--match {rule}: no row of {printable(candidate.name)} has the same {_BY[rule]} as a row of "
        f"{printable(baseline.name)}"
    )


def _keys(rule: str, *, with_datasets: bool) -> Callable[[Row], Key | None]:
    """Return a function that maps a row to its key, or to None if the row has no key for this rule."""

    def key(row: Row) -> Key | None:
        own = {
            "id": row.id if row.has_id else "",
            "question": row.question_key,
            "row": row.position.removeprefix(f"{row.file} "),
        }[rule]
        return (row.dataset if with_datasets else "", own) if own else None

    return key


def _matched(
    baseline: Side, candidate: Side, rule: Rule, keys: Callable[[Row], Key | None], duplicates: Duplicates
) -> Matching:
    repeated: list[Row] = []
    first, second = (_by_key(side, keys, rule, duplicates, repeated) for side in (baseline, candidate))
    pairs = [(row, second[key]) for key, row in first.items() if key in second]
    paired = {row.index for pair in pairs for row in pair} | {row.index for row in repeated}
    alone = [[row for row in side.rows if row.index not in paired] for side in (baseline, candidate)]
    return Matching(
        baseline=baseline,
        candidate=candidate,
        rule=rule,
        pairs=pairs,
        only_baseline=alone[0],
        only_candidate=alone[1],
        repeated=repeated,
        other_references=sum(_differ(one, other, "references") for one, other in pairs),
        other_questions=sum(_differ(one, other, "question") for one, other in pairs) if rule == "id" else 0,
        unchecked=sum(not _may_be_checked(one, other) for one, other in pairs) if rule != "question" else 0,
    )


def _by_key(
    side: Side, keys: Callable[[Row], Key | None], rule: Rule, duplicates: Duplicates, repeated: list[Row]
) -> dict[Key, Row]:
    found: dict[Key, Row] = {}
    for row in side.rows:
        if (key := keys(row)) is None:
            continue
        if key not in found:
            found[key] = row
        elif duplicates == "first":
            repeated.append(row)
        else:
            same = f"{_BY[rule]} {_cut(row.id)}" if rule == "id" else _BY[rule]
            raise InputError(
                f"{printable(side.name)}: {found[key].position} and {row.position} have the same {same}. Use "
                "--duplicates first to keep only the first row, --models to compare models in one file, or "
                "--map id=COLUMN to distinguish the rows"
            )
    return found


def _check_questions(matching: Matching) -> None:
    if matching.other_questions:
        one, two = next(pair for pair in matching.pairs if _differ(*pair, "question"))
        raise InputError(
            f"{matching.other_questions} rows with the same id have different questions in "
            f"{printable(matching.baseline.name)} and {printable(matching.candidate.name)}: {_cut(one.id)} asks "
            f"{_field(one, 'question')!r:.80} and {_field(two, 'question')!r:.80}. Use --match question to match by "
            "questions, or --match id to match by ids anyway"
        )


def _has_more_text(row: Row) -> bool:
    """Return True if a row has an id or several fields. Rows with the same number may then be unrelated."""
    return row.has_id or len(row.item or {}) > 1


def _differ(one: Row, other: Row, name: str) -> bool:
    values = [_field(row, name) for row in (one, other)]
    return None not in values and values[0] != values[1]


def _may_be_checked(one: Row, other: Row) -> bool:
    """Return True if both rows have a question or references, or if a row cannot be read and so has no score."""
    if one.problem or other.problem:
        return True
    return any(None not in (_field(one, name), _field(other, name)) for name in ("question", "references"))


def _field(row: Row, name: str) -> object:
    value = (row.item or {}).get(name)
    if isinstance(value, list):
        return sorted(str(each).strip() for each in value)
    return str(value).strip() if value is not None else None


def _named(rows: Sequence[Row]) -> str:
    shown = ", ".join(f"{_cut(row.id)} ({row.position})" for row in rows[:_SHOWN_ROWS])
    return shown + (f" and {len(rows) - _SHOWN_ROWS} more" if len(rows) > _SHOWN_ROWS else "")


def _cut(text: str) -> str:
    shown = printable(text)
    return shown if len(shown) <= _SHOWN_CHARACTERS else f"{shown[: _SHOWN_CHARACTERS - 1]}…"
