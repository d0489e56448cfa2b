"""Read the files of rows for a grader: labelled answers, pairs that differ in one place, and sentence pairs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field
from pydantic_core import from_json

from gradewire_stats.calibration.labelled_rows import Half, half_of
from gradewire_train import TrainingError
from gradewire_train.examples import AnswerLine, json_lines, numbered_lines
from gradewire_train.rows.row import DRAWN, GraderRow, best_references, row_id
from gradewire_train.rows.sentence_pairs import is_sentence_pair, read_sentence_pairs, read_table_of_pairs

_Grade = Annotated[float, Field(ge=0, le=1)]


@dataclass(frozen=True, slots=True)
class _Line(AnswerLine):
    id: Any = None
    label: _Grade | None = None
    labels: tuple[_Grade, ...] = ()
    dataset: Any = None
    kind: Any = ""


@dataclass(frozen=True, slots=True)
class _ChangedLine:
    """A right answer and the same answer with one place changed, as ``gradewire bench flips`` reads them."""

    question: str
    references: Annotated[tuple[str, ...], Field(min_length=1)]
    answer: str
    changed: str
    label: _Grade
    id: Any = None
    dataset: Any = None


def read_rows(path: Path, *, half: Half | None = None) -> list[GraderRow]:
    """Read rows from JSON lines, or from a table with tabs. The fields of the first line tell the file's form.

    - Labelled answers: question, references, a prediction, and one label (0 to 1) or several annotators' labels.
    - Pairs that differ in one place: question, references, a right answer, the changed answer, and its label. Each pair
      becomes two rows.
    - Sentence pairs; see `gradewire_train.rows.sentence_pairs`.

    If `half` is given, keep only rows whose question is in this split. A sentence pair has no question and is kept.

    Raises:
        TrainingError: A line is invalid (the message states the line), or no row is left.
    """
    rows = list(_rows(path))
    if half is not None:
        rows = [row for row in rows if not row.question or half_of(row.question) == half]
    if not rows:
        raise TrainingError(f"{path} has no row" + (f" in half {half}" if half else ""))
    return rows


def _rows(path: Path) -> Iterator[GraderRow]:
    if path.suffix.lower() == ".tsv":
        return read_table_of_pairs(path)
    fields = _first_fields(path)
    if is_sentence_pair(fields):
        return read_sentence_pairs(path)
    if "changed" in fields:
        return (row for where, line in json_lines(path, _ChangedLine) for row in _both(line, where, path))
    return (_row(line, where, path) for where, line in json_lines(path, _Line))


def _first_fields(path: Path) -> Sequence[str]:
    """Return the fields of the first line; a line that is not an object has none, and its reader reports it."""
    for _, line in numbered_lines(path):
        try:
            found = from_json(line)
        except ValueError:
            return ()
        return tuple(found) if isinstance(found, dict) else ()
    return ()


def _both(line: _ChangedLine, where: str, path: Path) -> Iterator[GraderRow]:
    for name, said, label in (("answer", line.answer, 1.0), ("changed", line.changed, line.label)):
        yield GraderRow(
            id=f"{line.id or row_id(path, where)} {name}",
            question=line.question,
            references=best_references(line.references, said),
            prediction=said,
            label=label,
            source=str(line.dataset or path.stem),
        )


def _row(line: _Line, where: str, path: Path) -> GraderRow:
    labels = line.labels or (line.label,)
    grades = [label for label in labels if label is not None]
    if not grades:
        raise TrainingError(
            f"{where}: label must be a number from 0 (wrong) to 1 (right), or labels must be a list of such numbers"
        )
    return GraderRow(
        id=str(line.id or row_id(path, where)),
        question=line.question,
        references=best_references(line.references, line.prediction),
        prediction=line.prediction,
        label=sum(grades) / len(grades),
        source=(source := str(line.dataset or path.stem)),
        kind=str(line.kind) if source == DRAWN else "",
    )
