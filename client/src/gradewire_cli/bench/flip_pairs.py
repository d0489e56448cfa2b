"""Read and score pairs of a right answer and the same answer with one place changed."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from gradewire._rows import UnreadableValueError, is_missing
from gradewire_cli.bench.answer_edits import edited
from gradewire_cli.bench.paper_tables import Columns, fields_of
from gradewire_cli.problems import InputError
from gradewire_cli.results.table_formats import write_text
from gradewire_cli.rows.cells import CellReading, LeftOut, read_labels
from gradewire_cli.rows.columns import RowOptions
from gradewire_cli.rows.formats import TEXT_CELLS, Record, format_of, printable
from gradewire_cli.rows.input_file import InputFile
from gradewire_cli.rows.row import is_wanted
from gradewire_stats.flips import TwoForms

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from gradewire.transport import Transport
    from gradewire_cli.options.common import Grouping
    from gradewire_cli.scoring.labelled_rows import LabelledRows
    from gradewire_cli.scoring.labelled_run import LabelledRun

_Read = TypeVar("_Read")
_TEXTS: Final = ("question", "answer", "changed")
_FORMS: Final = 2
_EDIT_COLUMN: Final = "edit"


@dataclass(frozen=True, slots=True, kw_only=True)
class FlipPair:
    """A right answer, and the same answer with one place changed.

    Attributes:
        still_right: True if the changed answer is still right.
        told_apart: The question ID by its column's name. The ID distinguishes questions with the same words.
        groups: The pair's values by the names in --group-by.
    """

    id: str
    question: str
    references: Sequence[str]
    answer: str
    changed: str
    still_right: bool
    told_apart: Mapping[str, str] = field(default_factory=dict)
    groups: Mapping[str, str] = field(default_factory=dict)

    @property
    def right_answers(self) -> list[tuple[str, str]]:
        """The names and texts of the right answers."""
        return [("answer", self.answer), *([("changed", self.changed)] if self.still_right else [])]

    def items(self) -> Iterator[dict[str, Any]]:
        """Yield the answer and the changed answer, as rows of a labelled file."""
        yield self.item("answer", self.answer, label=1)
        yield self.item("changed", self.changed, label=int(self.still_right))

    def item(self, name: str, text: str, *, label: int = 1, edit: str = "") -> dict[str, Any]:
        """Return a row of a labelled file."""
        return {
            "id": "/".join(filter(None, (self.id, name, edit))),
            "question": self.question,
            "references": list(self.references),
            "prediction": text,
            "label": label,
            _EDIT_COLUMN: edit,
            **self.told_apart,
        }


@dataclass(frozen=True, slots=True)
class EditedAnswer:
    """A right answer after an edit.

    Attributes:
        form: The answer's field, "answer" or "changed".
        place: Position of the unedited answer among the items of all pairs.
        edit: The edit's name.
        text: The edited answer.
    """

    pair: FlipPair
    form: str
    place: int
    edit: str
    text: str


@dataclass(frozen=True, slots=True)
class PairReading:
    """Rules for reading pairs.

    Attributes:
        label_map: Numbers for labels that are words.
        where: Allowed values by column. Pairs with other values are skipped.
        groupings: Fields or columns that group pairs.
    """

    columns: Columns
    cells: CellReading
    label_map: Mapping[str, float]
    where: Mapping[str, frozenset[str]]
    groupings: Sequence[Grouping] = ()

    @classmethod
    def of(cls, source: InputFile, columns: Columns, groupings: Sequence[Grouping]) -> Self:
        """Return the rules for these files and options."""
        options = source.options
        formats = {format_of(path, source.reading.format) for path in source.paths}
        cells = CellReading(formats <= TEXT_CELLS, options.reference_separator, options.missing)
        return cls(columns, cells, options.label_map, options.where, groupings)

    def pair(self, record: Record, fields: Mapping[str, Any]) -> FlipPair:
        """Read a pair; raise ValueError with the field's name if the row is not a pair."""
        columns = self.columns
        texts = {name: self._text(fields, name) for name in _TEXTS}
        listed = self._read("references", fields, self.cells.texts) or []
        references = [text for text in listed if text and text.strip()]
        if not references:
            raise ValueError(self._lack("references"))
        human = read_labels(columns.value(fields, "label"), None, self.label_map)
        if human.value is None and not human.unreadable:
            raise ValueError(self._lack("label"))
        if human.value not in {0, 1}:
            raise ValueError(f"the label{self._where('label')} is not 0 or 1")
        own_id, question_id = (self._read(name, fields, self.cells.text) for name in ("id", "question_id"))
        return FlipPair(
            id=own_id or str(record.index),
            references=references,
            still_right=bool(human.value),
            told_apart={"question_id": question_id} if question_id else {},
            groups={name: self._group(fields, name) for grouping in self.groupings for name in grouping},
            **texts,
        )

    def _text(self, fields: Mapping[str, Any], name: str) -> str:
        text = self._read(name, fields, self.cells.text)
        if text is None or not text.strip():
            raise ValueError(self._lack(name))
        return text

    def _read(self, name: str, fields: Mapping[str, Any], read: Callable[[str, Any], _Read]) -> _Read:
        try:
            return read(name, self.columns.value(fields, name))
        except UnreadableValueError as error:
            raise ValueError(f"{name}{error}") from error

    def _lack(self, name: str) -> str:
        return f"no {name}{self._where(name)}"

    def _where(self, name: str) -> str:
        return f" in column {' or '.join(self.columns.of(name))}"

    def _group(self, fields: Mapping[str, Any], name: str) -> str:
        value = self.columns.value(fields, name) if name in self.columns.usual else fields.get(name)
        return "" if is_missing(value) else str(value)

    def missing_groups(self, present: Container[str]) -> list[str]:
        """Return the names in --group-by that have no column in `present`."""
        usual = self.columns.usual
        return [
            name
            for grouping in self.groupings
            for name in grouping
            if not any(column in present for column in (self.columns.of(name) if name in usual else (name,)))
        ]


@dataclass(slots=True)
class FlipFile:
    """A file's pairs, and counts of skipped rows by reason."""

    pairs: list[FlipPair] = field(default_factory=list)
    left_out: LeftOut = field(default_factory=LeftOut)

    @classmethod
    def read(cls, source: InputFile, reading: PairReading) -> Self:
        """Read the files; raise InputError if there is no pair or an option names a missing column."""
        found = cls()
        present: dict[str, None] = {}
        records = (replace(each, position=_position(source, each)) for each in source.records())
        for record, fields in fields_of(records, found.left_out):
            present |= dict.fromkeys(fields)
            if not is_wanted(fields, reading.where):
                continue
            try:
                found.pairs.append(reading.pair(record, fields))
            except ValueError as error:
                found.left_out.add(str(error), record.position)
        reading.columns.check(present, [*reading.where, *reading.missing_groups(present)])
        if not found.pairs:
            why = "; ".join(found.sentences()) or "the file has none"
            there = ", ".join(map(printable, present)) or "none"
            raise InputError(f"no pair can be read: {why} (columns: {there}). Choose columns with --map FIELD=COLUMN")
        return found

    def sentences(self) -> list[str]:
        """Return sentences on skipped rows."""
        return self.left_out.sentences("rows")

    def items(self, edits: Iterable[EditedAnswer]) -> list[dict[str, Any]]:
        """Return the rows to score: both forms of each pair, then the edited answers."""
        pairs = [item for pair in self.pairs for item in pair.items()]
        return [*pairs, *(each.pair.item(each.form, each.text, edit=each.edit) for each in edits)]

    def edits(self) -> list[EditedAnswer]:
        """Return each edit of each distinct right answer."""
        seen: set[Hashable] = set()
        found = []
        for number, pair in enumerate(self.pairs):
            for place, (form, text) in enumerate(pair.right_answers, _FORMS * number):
                key = pair.question, tuple(pair.references), tuple(pair.told_apart.values()), text
                if key not in seen:
                    seen.add(key)
                    found += [EditedAnswer(pair, form, place, edit, changed) for edit, changed in edited(text).items()]
        return found


def _position(source: InputFile, record: Record) -> str:
    return record.position if len(source.paths) > 1 else f"{source.name} {record.position}"


def write_items(path: Path, items: Iterable[Mapping[str, Any]]) -> None:
    """Write items as a labelled file for `gradewire score`."""
    # ASCII keeps lone surrogates as escapes, so that the server can reject their item alone.
    write_text(path, "".join(f"{json.dumps(item)}\n" for item in items))


@dataclass(frozen=True, slots=True)
class ScoredItems:
    """A metric's results on all items: scores and verdicts (NaN if missing), and certainty, each by item."""

    scores: NDArray[np.float64]
    verdicts: NDArray[np.float64]
    certain: NDArray[np.bool_]
    questions: Sequence[str]

    def forms(self, places: NDArray[np.intp]) -> TwoForms:
        """Return the results on pairs of items. `places` contains the items' positions, int[answers, 2]."""
        return TwoForms(
            scores=self.scores[places],
            verdicts=self.verdicts[places],
            certain=self.certain[places],
            questions=[self.questions[place] for place in places[:, 0].tolist()],
        )


def scored_items(
    items: Sequence[Mapping[str, Any]], run: LabelledRun, transport: Transport | None
) -> tuple[dict[str, ScoredItems], LabelledRows]:
    """Score the items or read their scores. Return the results by metric, and the labelled rows with their tallies."""
    with tempfile.TemporaryDirectory(prefix="gradewire-flips-") as directory:
        path = Path(directory) / "items.jsonl"
        write_items(path, items)
        source = InputFile((str(path),), RowOptions(needed=("references", "prediction", "label")))
        labelled = replace(run, source=source).collect(transport)
    judged = labelled.judged()
    return {
        label: ScoredItems(scores, judged.verdicts[label], labelled.certain(label), judged.questions)
        for label, scores in judged.scores.items()
    }, labelled
