"""Questions with several answers, from rows with a list of answers or from one row for each answer."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from gradewire._columns import ALIASES, similar_columns
from gradewire._rows import is_missing, plain, unpacked_list
from gradewire.candidates import CANDIDATE_COLUMNS
from gradewire.ranking import QuestionPlan
from gradewire.results import Status
from gradewire_cli.leaderboard.reading import answer_at, user_turns
from gradewire_cli.problems import InputError
from gradewire_cli.rows.formats import printable
from gradewire_cli.rows.row import pictures_digest, pictures_of, shown_pictures

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from gradewire_cli.rows.formats import Record


_SINGLE: Final = {"answer": ALIASES["prediction"], "question_id": ALIASES["question_id"]}
"""Columns of a file with one row for each answer."""
RANK_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {**CANDIDATE_COLUMNS, **_SINGLE}
"""Columns that may contain each field. `answer` and `question_id` are read if no row has a list of answers."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question that is ready to be sent.

    Attributes:
        position: Readable position of its first row.
        plan: The pairs to compare.
        digest: Digest (32 hex digits) of everything that the ranking depends on except the judge.
        ids: Ids of the answers' rows; empty if one row has all answers.
    """

    index: int
    position: str
    plan: QuestionPlan
    digest: str
    ids: Sequence[str] = ()

    @property
    def answers(self) -> Sequence[str | None]:
        """The answers; empty if the row cannot be read."""
        return self.plan.given.answers if self.plan.given is not None else ()


@dataclass(frozen=True, slots=True)
class QuestionReader:
    """A reader of questions.

    Attributes:
        mapped: Columns by field from --map.
        max_pairs: Maximum number of pairs of a question, or None.
        folder: The folder of the pictures that the judge sees, or None if it sees none.
    """

    mapped: Mapping[str, str] = field(default_factory=dict)
    max_pairs: int | None = None
    folder: Path | None = None

    def read(self, name: str, records: Iterable[Record]) -> Iterator[Question]:
        """Yield the questions of a file. Rows with one answer are first collected by `question_id`.

        Raises:
            InputError: The first readable row has neither a list of answers nor one answer with a `question_id`.
        """
        waiting: list[Record] = []
        remaining = iter(records)
        for record in remaining:
            waiting.append(record)
            if record.fields is not None:
                break
        else:
            if not waiting:
                raise InputError(f"{name} has no rows")
        first = next((record.fields for record in waiting if record.fields is not None), {})
        every = _chained(waiting, remaining)
        if self._columns("answers", first) or not first:
            for record in every:
                yield self._of_row(record)
            return
        if not (self._columns("answer", first) and self._columns("question_id", first)):
            there = ", ".join(map(printable, first))
            raise InputError(
                f"{name}: no column with a list of answers (looked for {', '.join(RANK_COLUMNS['answers'])}). Columns: "
                f"{there}. Use --map answers=COLUMN, or give one row for each answer with a column question_id"
            )
        yield from self._of_rows(every)

    def _columns(self, field_name: str, fields: Mapping[str, Any]) -> list[str]:
        if field_name in self.mapped:
            return [self.mapped[field_name]] if self.mapped[field_name] in fields else []
        return similar_columns(RANK_COLUMNS[field_name], fields)

    def _value(self, field_name: str, fields: Mapping[str, Any]) -> Any:
        values = (fields[column] for column in self._columns(field_name, fields))
        return next((value for value in values if not is_missing(value)), None)

    def _of_row(self, record: Record) -> Question:
        if record.fields is None:
            return self._unreadable(record)
        values = {name: self._value(name, record.fields) for name in CANDIDATE_COLUMNS}
        answers = _listed(values["answers"])
        if answers is not None:
            values["answers"] = list(map(_answer, answers))
        return self._question(record.index, record, values)

    def _of_rows(self, records: Iterable[Record]) -> Iterator[Question]:
        collected: dict[str, list[Record]] = {}
        for record in records:
            identifier = "" if record.fields is None else str(self._value("question_id", record.fields) or "").strip()
            # A row without a question's id stands alone and gets an error.
            collected.setdefault(identifier or f"\n{record.index}", []).append(record)
        for index, (identifier, rows) in enumerate(collected.items()):
            fields = rows[0].fields
            if fields is None:
                yield self._unreadable(rows[0], index)
                continue
            values = {name: self._value(name, fields) for name in CANDIDATE_COLUMNS}
            values["id"] = identifier.strip()
            found = [record.fields or {} for record in rows]
            values["answers"] = [_answer(self._value("answer", each)) for each in found]
            ids = [str(each.get("id", record.index)) for each, record in zip(found, rows, strict=True)]
            yield self._question(index, rows[0], values, ids)

    def _question(self, index: int, record: Record, values: dict[str, Any], ids: Sequence[str] = ()) -> Question:
        if isinstance(values["question"], list):
            values["question"] = user_turns(values["question"])
        named = pictures_of(values.pop("images"))
        content = [values, ids, self.max_pairs, pictures_digest(named, self.folder) if named and self.folder else ""]
        encoded = json.dumps(content, sort_keys=True, ensure_ascii=True, default=repr).encode()
        digest = hashlib.blake2b(encoded, digest_size=16).hexdigest()
        problem = ""
        if self.folder is not None:
            values["images"], problem = shown_pictures(named, self.folder)
        if values["id"] is None:
            values["id"] = str(record.index)
        plan = QuestionPlan.of(index, values, self.max_pairs)
        if problem and plan.refusal is None:
            plan = plan.refused((Status.INVALID_INPUT, problem))
        return Question(index, record.position, plan, digest, ids)

    def _unreadable(self, record: Record, index: int | None = None) -> Question:
        place = record.index if index is None else index
        refusal = Status.INVALID_INPUT, f"{record.position} {record.problem}"
        digest = hashlib.blake2b(record.raw.encode(errors="replace"), digest_size=16).hexdigest()
        plan = QuestionPlan(place, None, refusal, id=printable(record.id) or str(record.index))
        return Question(place, record.position, plan, digest)


def _answer(value: Any) -> Any:
    """Return an answer's text if it is a conversation. A missing answer is an empty one, as in other commands."""
    if is_missing(value):
        return ""
    return answer_at(value) if isinstance(value, list) else value


def _listed(value: Any) -> list[Any] | None:
    value = plain(value)
    if isinstance(value, str):
        return unpacked_list(value)
    return list(value) if isinstance(value, list | tuple) else None


def _chained(first: Iterable[Record], then: Iterable[Record]) -> Iterator[Record]:
    yield from first
    yield from then
