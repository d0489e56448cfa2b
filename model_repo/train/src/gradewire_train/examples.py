"""Training examples of SFVE, and the JSON lines that they are read from."""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from gradewire_train.errors import TrainingError

_LONE_SURROGATE = re.compile(r"[\ud800-\udfff]")

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


def json_objects(path: Path, fields: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields each line's place ("FILE, line 3") and object; blank lines are left out.

    Raises:
        TrainingError: The file cannot be read, or a line is no object; the message says that it should have `fields`.
    """
    try:
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    where = f"{path}, line {number}"
                    yield where, _object(line, where, fields)
    except (OSError, UnicodeDecodeError) as error:
        raise TrainingError(f"cannot read {path}: {error}") from error


def _object(line: str, where: str, fields: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise TrainingError(f"{where}: no JSON ({error})") from error
    if not isinstance(found, dict):
        raise TrainingError(f"{where}: should be an object with {fields}")
    return found


def answer_fields(found: Mapping[str, Any], where: str) -> tuple[str, tuple[str, ...], str]:
    """Return question, references and prediction of an object.

    Raises:
        TrainingError: One is missing, of another type or holds a lone surrogate; the message begins with `where`.
    """
    for name in ("question", "prediction"):
        if not isinstance(found.get(name), str):
            raise TrainingError(f"{where}: {name} should be a text")
    references = found.get("references")
    if not isinstance(references, list) or not references or not all(isinstance(each, str) for each in references):
        raise TrainingError(f"{where}: references should be a list of texts, at least one")
    for name in ("question", "prediction", "references"):
        require_well_formed(f"{where}: {name}", references if name == "references" else [found[name]])
    return found["question"], tuple(references), found["prediction"]


def lines_digest(lines: Iterable[str]) -> str:
    """Return the SHA-256 of lines in UTF-8, in hexadecimal."""
    digest = hashlib.sha256()
    for line in lines:
        digest.update(f"{line}\n".encode())
    return digest.hexdigest()


def require_well_formed(where: str, texts: Iterable[str]) -> None:
    """Raise TrainingError where a lone surrogate stands in one of `texts`."""
    if not all(map(well_formed, texts)):
        raise TrainingError(f"{where} has a lone surrogate, which is no character")


def well_formed(text: str) -> bool:
    """False where a lone surrogate stands in it: JSON can write one, UTF-8 and tokenizers cannot."""
    return _LONE_SURROGATE.search(text) is None


@dataclass(frozen=True, slots=True)
class Files:
    """The user's files in JSON lines: questions with answers, and sentence pairs.

    Attributes:
        columns: The files' fields for `question`, `answer`, `answers`, `premise`, `hypothesis`, `label`, `anchor`,
            `positive`, `negative`, `negatives`, where they are named otherwise.
        skip_bad_lines: Leaves bad lines out, with a warning.
    """

    questions: Sequence[Path] = ()
    nli_pairs: Sequence[Path] = ()
    columns: Mapping[str, str] = field(default_factory=dict)
    skip_bad_lines: bool = False


@dataclass(frozen=True, slots=True)
class Example:
    """One training example.

    Attributes:
        task: Of `TASKS`.
        question: What the texts answer; "" where they are sentences of their own.
        anchor: An answer, or a sentence.
        positive: What means the same as `anchor`.
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
    """The text an encoder reads: what the metric `sfve` asks for, or the bare `answer` where `question` is "".

    Source: Ji, Si, Lin et al. 2024, "Towards Flexible Evaluation for Generative Visual Question Answering", section 4.
    """
    return f"Question: {question} Answer: {answer}" if question else answer


def texts(example: Example) -> tuple[str, ...]:
    """The texts of an example as an encoder reads them: anchor, positive, then the negatives in their order."""
    return tuple(question_text(example.question, answer) for answer in example.answers)
