"""Training examples of SFVE, and the JSON lines that they are read from."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, TypeVar

from pydantic import Field

from gradewire_models.catalog.table import FieldError, read_json
from gradewire_train import TrainingError

T = TypeVar("T")

GROUPS = MappingProxyType(
    {
        "nli": ("nli",),
        "candidates": ("candidates",),
        "synonyms": ("synonyms", "numbers", "colours", "yes_no", "names", "dates"),
        "descriptions": ("descriptions",),
    }
)
"""The pretraining tasks of the paper (section 4.1), each with the tasks here that belong to it."""

TASKS = tuple(task for tasks in GROUPS.values() for task in tasks)
"""Names of all tasks."""


@dataclass(frozen=True, slots=True)
class AnswerLine:
    """The fields that every line with an answer has."""

    question: str
    references: Annotated[tuple[str, ...], Field(min_length=1)]
    prediction: str


def json_lines(path: Path, kind: type[T]) -> Iterator[tuple[str, T]]:
    """Yield the place of each line ("FILE, line 3") and what it holds; blank lines are left out.

    Raises:
        TrainingError: The file cannot be read, or a line is no JSON object with the fields of the dataclass `kind`; the
            message names line and field.
    """
    for number, line in numbered_lines(path):
        where = f"{path}, line {number}"
        try:
            yield where, read_json(kind, line)
        except FieldError as error:
            raise TrainingError(f"{where}: {error}") from error


def numbered_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a file that are not blank, with their numbers from 1 on; raises TrainingError for OSError."""
    try:
        with path.open("rb") as lines:
            yield from ((number, line) for number, line in enumerate(lines, 1) if line.strip())
    except OSError as error:
        raise TrainingError(f"{path} cannot be read: {error.strerror}; name a file of JSON lines") from error


def lines_digest(lines: Iterable[str]) -> str:
    """Return the SHA-256 of lines in UTF-8, in hexadecimal."""
    digest = hashlib.sha256()
    for line in lines:
        digest.update(f"{line}\n".encode())
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Files:
    """The user's files in JSON lines: questions with answers, and sentence pairs.

    `columns` are the files' names for our fields, where they differ. Bad lines that are skipped are warned of.
    """

    questions: Sequence[Path] = ()
    nli_pairs: Sequence[Path] = ()
    columns: Mapping[str, str] = field(default_factory=dict)
    skip_bad_lines: bool = False


@dataclass(frozen=True, slots=True)
class Example:
    """One training example: an anchor, and texts that mean the same and that do not, though they look it.

    Attributes:
        question: What the texts answer; "" where they are sentences of their own.
        negatives: Hard negatives: similar in form, and other answers. None of them means what `anchor` does.
    """

    task: str
    question: str
    anchor: str
    positive: str
    negatives: tuple[str, ...]

    @property
    def answers(self) -> tuple[str, ...]:
        """Anchor, positive, then the negatives in their order."""
        return (self.anchor, self.positive, *self.negatives)


def question_text(question: str, answer: str) -> str:
    """Return the text an encoder reads: what the metric `sfve` asks for, or the bare `answer` where `question` is "".

    Source: Ji, Si, Lin et al. 2024, "Towards Flexible Evaluation for Generative Visual Question Answering", section 4.
    """
    return f"Question: {question} Answer: {answer}" if question else answer


def texts(example: Example) -> tuple[str, ...]:
    """Return the texts of an example as an encoder reads them: anchor, positive, then the negatives in their order."""
    return tuple(question_text(example.question, answer) for answer in example.answers)
