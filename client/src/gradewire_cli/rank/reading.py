"""Questions with several answers, from rows with a list of answers or from one row for each answer."""

from __future__ import annotations

import hashlib
import itertools
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from gradewire._columns import similar_columns
from gradewire._rows import is_missing, plain
from gradewire.ranking import QuestionPlan
from gradewire.results import Status
from gradewire_cli.leaderboard.reading import answer_at, user_turns
from gradewire_cli.problems import InputError
from gradewire_cli.rank.layout import Layout, listed_of
from gradewire_cli.rows.formats import printable
from gradewire_cli.rows.row import PEEK_ROWS, pictures_digest, shown_pictures

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from gradewire.ranking import ListRule
    from gradewire_cli.rows.formats import Record


_SHARED: Final = ("question", "references", "captions", "images")
"""Fields that the rows of one question share."""


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
        by_lists: The rule for a judge that puts all answers in order, or None for one that compares pairs.
    """

    mapped: Mapping[str, str] = field(default_factory=dict)
    max_pairs: int | None = None
    folder: Path | None = None
    by_lists: ListRule | None = None

    def read(self, name: str, records: Iterable[Record]) -> Iterator[Question]:
        """Yield the questions of a file. Rows with one answer are first collected by `question_id`.

        Raises:
            InputError: The first rows have neither a list of answers nor one answer with a `question_id`, or several
                columns could have the answers.
        """
        waiting: list[Record] = []
        readable: list[Mapping[str, Any]] = []
        remaining = iter(records)
        for record in remaining:
            waiting.append(record)
            if record.fields is not None:
                readable.append(record.fields)
            if len(waiting) >= PEEK_ROWS and readable:
                break
        if not waiting:
            raise InputError(f"{name} has no rows")
        layout = Layout.of(name, readable, self.mapped)
        every = itertools.chain(waiting, remaining)
        if layout.has_lists:
            for record in every:
                yield self._of_row(record, layout)
        else:
            yield from self._of_rows(every, layout)

    def _of_row(self, record: Record, layout: Layout) -> Question:
        if record.fields is None:
            return self._unreadable(record)
        values = layout.values(record.fields)
        if problem := layout.problem(record.fields):
            values["answers"] = []
            return self._question(record.index, record, values, problem=record.position + problem)
        values["answers"] = list(map(_answer, listed_of(values["answers"]) or ()))
        return self._question(record.index, record, values)

    def _of_rows(self, records: Iterable[Record], layout: Layout) -> Iterator[Question]:
        collected: dict[tuple[str, str], list[Record]] = {}
        for record in records:
            fields = record.fields or {}
            value = layout.value("question_id", fields)
            identifier = "" if value is None else str(plain(value)).strip()
            datasets = (fields[column] for column in similar_columns(("dataset",), fields))
            dataset = next((str(plain(value)) for value in datasets if not is_missing(value)), "")
            # A row without a question's id stands alone and gets an error.
            collected.setdefault((dataset, identifier) if identifier else ("\n", str(record.index)), []).append(record)
        for index, ((_, identifier), rows) in enumerate(collected.items()):
            first = rows[0]
            if first.fields is None:
                yield self._unreadable(first, index)
                continue
            found = [record.fields or {} for record in rows]
            values = layout.values(first.fields)
            values["id"] = identifier
            values["answers"] = [_answer(layout.value("answer", each)) for each in found]
            ids = [str(each.get("id", record.index)) for each, record in zip(found, rows, strict=True)]
            yield self._question(index, first, values, ids, problem=_difference(rows, layout, identifier))

    def _question(
        self, index: int, record: Record, values: dict[str, Any], ids: Sequence[str] = (), *, problem: str = ""
    ) -> Question:
        if isinstance(values["question"], list):
            values["question"] = user_turns(values["question"])
        named = values.pop("images")
        content = [values, ids, self.max_pairs, pictures_digest(named, self.folder) if named and self.folder else ""]
        encoded = json.dumps([*content, *filter(None, [problem])], sort_keys=True, ensure_ascii=True, default=repr)
        digest = hashlib.blake2b(encoded.encode(), digest_size=16).hexdigest()
        if self.folder is not None:
            values["images"], unseen = shown_pictures(named, self.folder)
            problem = problem or unseen
        if values["id"] is None:
            values["id"] = str(record.index)
        plan = QuestionPlan.of(index, values, self.max_pairs, name=record.position, by_lists=self.by_lists)
        if problem:
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


def _difference(rows: Sequence[Record], layout: Layout, identifier: str) -> str:
    """Return a sentence if rows with one question_id are about different questions, or ""."""
    first, *others = (layout.values(record.fields or {}) for record in rows)
    for record, values in zip(rows[1:], others, strict=True):
        for name in _SHARED:
            if repr(plain(values[name])) != repr(plain(first[name])):
                return (
                    f"{rows[0].position} and {record.position} have the question_id {printable(identifier)}, but "
                    f"different values of {name}: give each question its own question_id"
                )
    return ""
