"""Define SFVE's training examples, and read JSON lines."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, TypeVar

from pydantic import Field

from gradewire_models.catalog.table import FieldError, read_json
from gradewire_stats.calibration.labelled_rows import Half
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
"""The pretraining tasks in SFVE's paper (section 4.1), each with our corresponding tasks."""

TASKS = tuple(task for tasks in GROUPS.values() for task in tasks)
"""The names of all tasks."""


@dataclass(frozen=True, slots=True)
class AnswerLine:
    """The fields that every line with an answer must have."""

    question: str
    references: Annotated[tuple[str, ...], Field(min_length=1)]
    prediction: str


def json_lines(path: Path, kind: type[T]) -> Iterator[tuple[str, T]]:
    """Yield each line's position ("FILE, line 3") and content; skip blank lines.

    Raises:
        TrainingError: The file is not readable, or a line is not a JSON object with the fields of the dataclass `kind`.
    """
    for number, line in numbered_lines(path):
        where = f"{path}, line {number}"
        try:
            yield where, read_json(kind, line)
        except FieldError as error:
            raise TrainingError(f"{where}: {error}") from error


def numbered_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield a file's lines that are not blank, with their line numbers from 1.

    Raises:
        TrainingError: The file is not readable.
    """
    try:
        with path.open("rb") as lines:
            yield from ((number, line) for number, line in enumerate(lines, 1) if line.strip())
    except OSError as error:
        raise TrainingError(f"cannot read {path}: {error.strerror}. Use a file of JSON lines") from error


def lines_digest(lines: Iterable[str]) -> str:
    """Return the SHA-256 of lines in UTF-8, 64 hex characters."""
    digest = hashlib.sha256()
    for line in lines:
        digest.update(f"{line}\n".encode())
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Files:
    """The user's files in JSON lines: questions with answers, and sentence pairs.

    `columns` maps gradewire's field names to different names in the files. `half` keeps only the questions of one half.
    If `skip_bad_lines` is set, bad lines are skipped with a warning.
    """

    questions: Sequence[Path] = ()
    nli_pairs: Sequence[Path] = ()
    columns: Mapping[str, str] = field(default_factory=dict)
    half: Half | None = None
    skip_bad_lines: bool = False


@dataclass(frozen=True, slots=True)
class Example:
    """A training example: an anchor, an equivalent text, and texts that look similar but differ in meaning.

    Attributes:
        question: Question that the texts answer; "" for plain sentences.
        negatives: Hard negatives, which look similar to `anchor` or answer the same question, but differ in meaning.
    """

    task: str
    question: str
    anchor: str
    positive: str
    negatives: tuple[str, ...]

    @property
    def answers(self) -> tuple[str, ...]:
        """The anchor, the positive, then the negatives in order."""
        return (self.anchor, self.positive, *self.negatives)


def question_text(question: str, answer: str) -> str:
    """Return the encoder's input in the format of the metric `sfve`, or the bare `answer` if `question` is "".

    Source: Ji, Si, Lin et al. 2024, "Towards Flexible Evaluation for Generative Visual Question Answering", section 4.
    """
    return f"Question: {question} Answer: {answer}" if question else answer


def texts(example: Example) -> tuple[str, ...]:
    """Return an example's inputs for the encoder: anchor, positive, then the negatives in order."""
    return tuple(question_text(example.question, answer) for answer in example.answers)
