"""Sides of a comparison, a file or a model each, and which of their rows answer the same question."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
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
    """All rows, about 2 KB each beside their texts.

    Attributes:
        lines: What reproduces each metric, by file and label; one file "" where all were scored by this run.
        results: By `row.index` and label.
    """

    rows: Sequence[Row]
    lines: dict[str, Mapping[str, str]] = field(default_factory=dict)
    results: dict[int, Mapping[str, Result]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    has_synthetic: bool = False

    def answer(self, row: Row) -> Answer:
        """Return a row with its results."""
        return Answer(row, self.results.get(row.index, {}))

    def lines_of(self, row: Row) -> Mapping[str, str]:
        """Return what reproduces the metrics of a row, by label."""
        return self.lines.get(row.file, self.lines.get("", {}))


_SHOWN_MODELS = 20
MOST_SIDES = 100
"""A leaderboard is for more: here each is a page of figures."""


@dataclass(frozen=True, slots=True)
class Side:
    """A model or run, with its answers in the order of the files."""

    name: str
    rows: Sequence[Row]

    @property
    def files(self) -> list[str]:
        """The files that they stand in; empty where one file has the rows of all sides."""
        return list(dict.fromkeys(row.file for row in self.rows if row.file))


def check_names(paths: Sequence[str], models: Sequence[str], names: Sequence[str]) -> None:
    """Refuse options that do not fit the files, before these are read; raises click.UsageError."""
    if models and names:
        raise click.UsageError("--names says what files are called, and --models compares models: leave one out")
    if names and len(names) != len(paths):
        raise click.UsageError(f"--names {','.join(names)}: give a name for each of the {len(paths)} files")
    for option, given in (("--models", models), ("--names", names)):
        if repeated := [name for name, times in Counter(given).items() if times > 1]:
            raise click.UsageError(f"{option} {','.join(given)}: {repeated[0]} stands there twice")
    if names and len(paths) == 1:
        raise click.UsageError("--names: one file is compared by its models (--models)")


def sides_of(
    rows: Sequence[Row], paths: Sequence[str], *, models: Sequence[str], names: Sequence[str], baseline: str | None
) -> tuple[list[Side], list[str]]:
    """Return the sides, the baseline first, and what is left out, in sentences.

    Raises:
        InputError: There are not two sides, or none of a name that an option gives.
    """
    by_model = len(paths) == 1 or bool(models)
    sides, left_out = _by_model(rows, models) if by_model else (_by_file(rows, paths, names), [])
    if len(sides) < 2:
        there = f"{paths[0]} has " + (f"rows of {sides[0].name} alone" if sides else "no column model with a value")
        raise InputError(
            f"{there}: give two files, or one with a column model and at least two models (--map model=COLUMN)"
        )
    if len(sides) > MOST_SIDES:
        raise InputError(f"{len(sides)} models are too many, {MOST_SIDES} are compared at most: --models names some")
    if baseline is not None:
        if baseline not in (known := [side.name for side in sides]):
            raise InputError(f"--baseline {baseline}: there is no such side, there are {_listed(known)}")
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
        raise InputError(f"--models {missing[0]}: no row is of this model, there are {_listed(known)}")
    left_out = [f"{nameless} rows have no model and are compared with none"] if nameless else []
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
    """The rows of a baseline and a candidate.

    Attributes:
        rule: By what their rows were matched: `auto` is resolved.
        pairs: Rows of one question, in the order of the baseline.
        repeated: Rows left out because an earlier one of their side answers the same question.
        other_references: Pairs whose rows have different references.
        other_questions: Pairs whose rows ask different questions: where --match id insists on ids.
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

    def notes(self) -> Iterator[str]:
        """Yield what is not compared, in sentences."""
        one, other = self.baseline.name, self.candidate.name
        for name, rows, partner in ((one, self.only_baseline, other), (other, self.only_candidate, one)):
            if rows:
                yield f"{len(rows)} rows of {name} have no partner in {partner} and are not compared: {_named(rows)}"
        if self.repeated:
            named = _named(self.repeated)
            yield f"{len(self.repeated)} rows repeat a question of their side and are not compared: {named}"
        if self.other_references:
            yield (
                f"{self.other_references} pairs of {one} and {other} have different references: each answer was scored "
                "against its own"
            )
        if self.other_questions:
            yield f"{self.other_questions} pairs of {one} and {other} have one id and ask different questions"
        if self.rule == "row":
            yield f"rows of {one} and {other} are matched by their numbers, for they have neither ids nor questions"


def match(baseline: Side, candidate: Side, *, rule: Rule, duplicates: Duplicates) -> Matching:
    """Find the rows of two sides that answer the same question.

    `auto` goes by ids; by questions (`question_id`, else question and image, else question and references) where ids
    join less than half of the rows and questions join more, for that two ids are alike may be chance; where rows have
    neither, by row numbers of outputs. Data sets count where both sides name them: q1 of one is not q1 of another.

    Raises:
        InputError: No row of one is a row of the other; two rows of a side answer the same question; or `auto` goes by
            ids and rows of one id ask different questions.
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
        if rule == "auto" and matching.rule == "id":
            _check_questions(matching)
        return matching
    raise InputError(
        f"no row of {printable(candidate.name)} is a row of {printable(baseline.name)}, by id or by question: are they "
        "answers to the same questions? --map id=COLUMN or --map question_id=COLUMN says what tells questions apart"
        if rule == "auto"
        else f"--match {rule}: no row of {printable(candidate.name)} has the {_BY[rule]} of one of "
        f"{printable(baseline.name)}"
    )


def _keys(rule: str, *, with_datasets: bool) -> Callable[[Row], Key | None]:
    """Return what rows of one question have in common; None for a row that has nothing of the kind."""

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
                f"{printable(side.name)}: {found[key].position} and {row.position} have the same {same}: which is to "
                "be compared? --duplicates first takes the first of such rows, --models compares models of one file, "
                "--map id=COLUMN tells rows apart"
            )
    return found


def _check_questions(matching: Matching) -> None:
    if matching.other_questions:
        one, two = next(pair for pair in matching.pairs if _differ(*pair, "question"))
        raise InputError(
            f"{matching.other_questions} rows of one id ask different questions in {printable(matching.baseline.name)} "
            f"and {printable(matching.candidate.name)}: {_cut(one.id)} asks {_field(one, 'question')!r:.80} and "
            f"{_field(two, 'question')!r:.80}; --match question goes by the questions, --match id by the ids all the "
            "same"
        )


def _has_more_text(row: Row) -> bool:
    """Tell whether a row says more than its number, so that chance alone would match it by that."""
    return row.has_id or len(row.item or {}) > 1


def _differ(one: Row, other: Row, name: str) -> bool:
    """Tell whether both rows have a field and it is not the same."""
    values = [_field(row, name) for row in (one, other)]
    return None not in values and values[0] != values[1]


def _field(row: Row, name: str) -> object:
    value = (row.item or {}).get(name)
    if isinstance(value, list):
        return sorted(map(str, value))
    return str(value).strip() if value is not None else None


def _named(rows: Sequence[Row]) -> str:
    shown = ", ".join(f"{_cut(row.id)} ({row.position})" for row in rows[:_SHOWN_ROWS])
    return shown + (f" and {len(rows) - _SHOWN_ROWS} more" if len(rows) > _SHOWN_ROWS else "")


def _cut(text: str) -> str:
    shown = printable(text)
    return shown if len(shown) <= _SHOWN_CHARACTERS else f"{shown[: _SHOWN_CHARACTERS - 1]}…"
