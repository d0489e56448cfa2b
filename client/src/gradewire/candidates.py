"""Several answers to one question, as callers give them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from gradewire._columns import ALIASES, similar_columns
from gradewire._rows import Table, UnreadableValueError, is_missing, kind_of, plain, text_of, unpacked_list
from gradewire.results import Status

CANDIDATE_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "question": (*ALIASES["question"], "prompt", "instruction"),
    "answers": ("answers", "candidates", "completions", "responses", "predictions", "generations", "outputs"),
    "references": tuple(name for name in ALIASES["references"] if name not in {"answers", "answer", "solution"}),
    "captions": ("captions", "caption"),
    "images": ("images", "image"),
    "id": ("id", "question_id"),
    "group": ALIASES["group"],
}
"""Usual names of the fields of `Candidates`. A row with a list of answers has no single answer."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """Several answers to one question. A mapping with the same keys, or with usual names for them, works too.

    Attributes:
        question: The question or instruction.
        answers: 2 to 64 answers. A blank answer gets the status EMPTY_PREDICTION. None (the model has no output) and
            anything else that is no text get INVALID_INPUT. Both are not compared. Equal answers are compared only
            once.
        references: Right answers, shown to the judge with `compare?references=true`.
        captions: Descriptions of the picture, shown with `caption=true`.
        images: Pictures that the question is about, in the formats of `Item.images`; sent with `image=true`.
        id: Your id for the question, returned with the result; need not be unique.
        group: A label for summaries; no metric reads it.
    """

    question: str
    answers: Sequence[str | None]
    references: Sequence[str] = ()
    captions: Sequence[str] = ()
    images: Sequence[object] = ()
    id: str = ""
    group: str = ""


Failed: TypeAlias = tuple[Status, str]
"""The status and the message of a failure."""
CandidatesLike: TypeAlias = Candidates | Mapping[str, Any]
CandidateRows: TypeAlias = Iterable[CandidatesLike] | Table
"""Questions with their answers, or a pandas, polars or Arrow table with one question per row."""


def candidates_of(row: object) -> tuple[Candidates, Mapping[int, Failed]]:
    """Return a row's candidates, and the failures of answers that are no text, by position.

    Raises:
        UnreadableValueError: The row is not one. The message continues a sentence that names the row.
    """
    if isinstance(row, Candidates):
        values = {name: getattr(row, name) for name in CANDIDATE_COLUMNS}
        images = values["images"]
    elif isinstance(row, Mapping):
        present = [key for key in row if isinstance(key, str)]
        values = {name: _first(row, similar_columns(names, present)) for name, names in CANDIDATE_COLUMNS.items()}
        images = _images(row[column] for column in similar_columns(CANDIDATE_COLUMNS["images"], present))
    else:
        raise UnreadableValueError(f" is {kind_of(row)}: give a mapping or a gradewire.Candidates")
    listed = _listed(values["answers"])
    if listed is None:
        there = kind_of(values["answers"])
        if values["answers"] is None and isinstance(row, Mapping):
            there = ", ".join(str(key) for key, value in row.items() if value is not None)
        raise UnreadableValueError(f".answers is not a list of answers (found: {there}): give a list of strings")
    answers, problems = _texts_of(listed)
    given = Candidates(
        question=_text("question", values["question"]),
        answers=answers,
        references=tuple(_texts("references", values["references"])),
        captions=tuple(_texts("captions", values["captions"])),
        images=() if is_missing(images) else images if isinstance(images, list | tuple) else (images,),
        id=_text("id", values["id"]),
        group=_text("group", values["group"]),
    )
    return given, problems


def _first(row: Mapping[str, Any], columns: Iterable[str]) -> Any:
    return next((row[column] for column in columns if not is_missing(row[column])), None)


def _images(columns: Iterable[Any]) -> list[Any]:
    """Return the pictures of all columns. A picture that two columns name is one picture."""
    found: list[Any] = []
    for value in columns:
        for each in value if isinstance(value, list | tuple) else () if is_missing(value) else (value,):
            if not any(each is other or (isinstance(each, str | bytes) and each == other) for other in found):
                found.append(each)
    return found


def _listed(value: Any) -> list[Any] | None:
    value = plain(value)
    if isinstance(value, str):
        return unpacked_list(value)
    return list(value) if isinstance(value, list | tuple) else None


def _texts_of(answers: Sequence[Any]) -> tuple[list[str | None], dict[int, Failed]]:
    texts: list[str | None] = []
    problems: dict[int, Failed] = {}
    for place, answer in enumerate(answers):
        try:
            texts.append(text_of(answer))
        except UnreadableValueError as error:
            texts.append(None)
            problems[place] = Status.INVALID_INPUT, f"the answer{error}"
    return texts, problems


def _text(name: str, value: Any) -> str:
    try:
        return text_of(value) or ""
    except UnreadableValueError as error:
        raise UnreadableValueError(f".{name}{error}") from None


def _texts(name: str, value: Any) -> Iterator[str]:
    listed = _listed(value)
    for place, each in enumerate(([] if is_missing(value) else [value]) if listed is None else listed):
        yield _text(f"{name}[{place}]", each)
