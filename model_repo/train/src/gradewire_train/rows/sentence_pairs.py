"""Read sentence pairs as rows: the first sentence is the reference, the second the answer.

The forms are those of public data sets: JSON lines or tables with `sentence1`, `sentence2` and `gold_label` (SNLI,
Breaking NLI, MED), tables with `ori_sentence`, `new_sentence` and `gold_label` (HELP), and JSON lines with a question
about a passage and the answer YES, NO or other words (CondaQA).
"""

import csv
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import Field

from gradewire_train import TrainingError
from gradewire_train.examples import json_lines, numbered_lines
from gradewire_train.rows.row import GraderRow, row_id

SENTENCE_PAIRS: Final = "sentence pairs"
"""The source of all rows from sentence pairs, which therefore have together the weight of one source."""
_FOLLOWS: Final[Mapping[str, bool | None]] = {
    "entailment": True,
    "neutral": False,
    "contradiction": False,
    "-": None,  # SNLI's label for pairs on which its annotators disagreed
}
_COLUMNS: Final = (("sentence1", "sentence2"), ("ori_sentence", "new_sentence"))
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+")


@dataclass(frozen=True, slots=True)
class _PairLine:
    sentence1: str
    sentence2: str
    gold_label: str


@dataclass(frozen=True, slots=True)
class _QuestionLine:
    """A question (`sentence2`) about a passage with one changed sentence (`sentence1`), in CondaQA's fields."""

    sentence1: str
    sentence2: str
    label: str
    original_passage: str = Field(alias="original passage")
    original_sentence: str = Field(alias="original sentence")


def is_sentence_pair(fields: Collection[str]) -> bool:
    """Return True if a line with these fields is a sentence pair, or a question about a passage."""
    return "sentence1" in fields


def read_sentence_pairs(path: Path) -> Iterator[GraderRow]:
    """Yield the rows of a file of JSON lines; all lines have the form of the first one.

    A sentence pair becomes one row without a question, which is right if the second sentence follows from the first.

    A question about a passage becomes two rows with the answers "Yes." and "No.", of which one is right. The reference
    consists of the sentences that the passage's editor changed or, in an original passage, of the sentence with the
    negation. Questions with answers other than YES and NO are skipped.

    Raises:
        TrainingError: A line is invalid.
    """
    first = next(numbered_lines(path), (0, b""))[1]
    if b'"original passage"' in first:
        for where, line in json_lines(path, _QuestionLine):
            yield from _answered(line, row_id(path, where))
        return
    for where, pair in json_lines(path, _PairLine):
        yield from _row(path, where, (pair.sentence1, pair.sentence2), pair.gold_label)


def read_table_of_pairs(path: Path) -> Iterator[GraderRow]:
    """Yield the rows of a table with tabs, whose first line contains the names of the columns.

    Raises:
        TrainingError: The file is not readable, a column is missing, or a line is invalid.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            table = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
            names = table.fieldnames or ()
            found = [pair for pair in _COLUMNS if {*pair, "gold_label"} <= set(names)]
            if not found:
                wanted = " or ".join(f"{first}, {second}" for first, second in _COLUMNS)
                raise TrainingError(f"{path} lacks columns: gold_label and {wanted}. Its first line must name them")
            first, second = found[0]
            for line in table:
                where = f"{path}, line {table.line_num}"
                if None in line.values():
                    raise TrainingError(f"{where}: fewer columns than the first line has")
                yield from _row(path, where, (line[first], line[second]), line["gold_label"])
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise TrainingError(f"cannot read {path}: {error}. Use a table with tabs in UTF-8") from error


def _row(path: Path, where: str, sentences: tuple[str, str], label: str) -> Iterator[GraderRow]:
    written = label.strip().lower()
    if written not in _FOLLOWS:
        raise TrainingError(f"{where}: gold_label must be one of {', '.join(_FOLLOWS)}, not {label!r:.40}")
    first, second = (sentence.strip() for sentence in sentences)
    if not first or not second:
        raise TrainingError(f"{where}: a sentence is blank")
    follows = _FOLLOWS[written]
    if follows is not None:
        yield GraderRow(row_id(path, where), "", (first,), second, float(follows), SENTENCE_PAIRS)


def _answered(line: _QuestionLine, name: str) -> Iterator[GraderRow]:
    right = {"YES": "Yes.", "NO": "No."}.get(line.label.strip().upper())
    if right is None:
        return
    before = set(_SENTENCE_END.split(line.original_passage))
    changed = [sentence for sentence in _SENTENCE_END.split(line.sentence1) if sentence not in before]
    reference = " ".join(changed) or line.original_sentence
    for answer in ("Yes.", "No."):
        yield GraderRow(
            f"{name} {answer}", line.sentence2, (reference,), answer, float(answer == right), SENTENCE_PAIRS
        )
