"""Which rows of two sides answer the same question."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from gradewire.cli.input.record import printable
from gradewire.cli.problems import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gradewire.cli.compare.input.sides import Side
    from gradewire.cli.input.rows import Row

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
        baseline, candidate: The sides.
        rule: By what their rows were matched: `auto` is resolved.
        pairs: Rows of one question, in the order of the baseline.
        only_baseline, only_candidate: Rows without a partner.
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
        """What is not compared, in sentences."""
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
    """Finds the rows of two sides that answer the same question.

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
        if name == "row" and rule == "auto" and any(map(_says_more, (*baseline.rows, *candidate.rows))):
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
    """What rows of one question have in common; None for a row that has nothing of the kind."""

    def key(row: Row) -> Key | None:
        own = {
            "id": row.id if row.has_id else "",
            "question": row.question_key,
            "row": row.place.removeprefix(f"{row.file} "),
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
                f"{printable(side.name)}: {found[key].place} and {row.place} have the same {same}: which is to be "
                "compared? --duplicates first takes the first of such rows, --models compares models of one file, "
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


def _says_more(row: Row) -> bool:
    """Whether a row says more than its number, so that chance alone would match it by that."""
    return row.has_id or len(row.item or {}) > 1


def _differ(one: Row, other: Row, name: str) -> bool:
    """Whether both rows have a field and it is not the same."""
    values = [_field(row, name) for row in (one, other)]
    return None not in values and values[0] != values[1]


def _field(row: Row, name: str) -> object:
    value = (row.item or {}).get(name)
    if isinstance(value, list):
        return sorted(map(str, value))
    return str(value).strip() if value is not None else None


def _named(rows: Sequence[Row]) -> str:
    shown = ", ".join(f"{_cut(row.id)} ({row.place})" for row in rows[:_SHOWN_ROWS])
    return shown + (f" and {len(rows) - _SHOWN_ROWS} more" if len(rows) > _SHOWN_ROWS else "")


def _cut(text: str) -> str:
    shown = printable(text)
    return shown if len(shown) <= _SHOWN_CHARACTERS else f"{shown[: _SHOWN_CHARACTERS - 1]}…"
