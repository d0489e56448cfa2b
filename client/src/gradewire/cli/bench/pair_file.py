"""Pairs of answers with the votes of people and the choices of evaluators, read from a file."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from gradewire.cli.bench.engine import Columns, fields_of
from gradewire.cli.input.cells import unpacked
from gradewire.cli.input.left_out import LeftOut
from gradewire.cli.input.record import Record
from gradewire.cli.problems import InputError

Choice = Literal["A", "B", "tie"]
_CHOICES: dict[str, Choice] = {"a": "A", "b": "B", "tie": "tie"}
PAIR_COLUMNS = Columns(
    {
        "votes": ("votes", "labels", "annotations"),
        "choice": ("choice", "choices"),
        "response_a": ("response_a", "prediction_a", "a"),
        "response_b": ("response_b", "prediction_b", "b"),
        "question": ("question", "instruction"),
        "question_id": ("question_id",),
        "image": ("image_id", "image"),
        "references": ("references", "reference"),
    }
)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two answers to one question.

    Attributes:
        index: Row number in the file, from 0.
        place: Where it stands, for people.
        votes: One per annotator.
        choices: By evaluator; None where it made none.
        responses: The two answers; None where the file has not both.
        question: "" where the file has none.
        references: May be empty.
        instruction_key: Alike in pairs about the same thing: its id, else image and question, else question and
            references, as JSON; the pair's own without any of these but references.
    """

    index: int
    place: str
    votes: tuple[Choice, ...]
    choices: Mapping[str, Choice | None]
    responses: tuple[str, str] | None
    question: str
    references: tuple[str, ...]
    instruction_key: str


@dataclass(slots=True)
class PairFile:
    """The pairs of a file.

    Attributes:
        pairs: Those with votes that can be read.
        left_out: The others.
    """

    pairs: list[Pair] = field(default_factory=list)
    left_out: LeftOut = field(default_factory=LeftOut)

    @classmethod
    def read(cls, records: Iterable[Record], columns: Columns, choices: Mapping[str, str]) -> Self:
        """Read records.

        Args:
            records: Rows of the file.
            columns: Where the fields stand.
            choices: Column of each evaluator's choice; empty: the column `choice`, or the mapping in `choices`.

        Raises:
            InputError: No pair has votes; says what was looked for.
        """
        found = cls()
        for record, fields in fields_of(records, found.left_out):
            try:
                found.pairs.append(_pair(record, fields, columns, choices))
            except ValueError as error:
                found.left_out.add(str(error), record.place)
        if not found.pairs:
            raise InputError(
                f"no pair has votes (looked for {', '.join(columns.of('votes'))}): "
                f"{'; '.join(found.left_out.sentences('pairs')) or 'the file is empty'}"
            )
        return found

    def choices(self) -> dict[str, list[Choice | None]]:
        """Choices of each evaluator that the file knows; None where it made none."""
        names = dict.fromkeys(name for pair in self.pairs for name in pair.choices)
        return {name: [pair.choices.get(name) for pair in self.pairs] for name in names}


def _pair(record: Record, fields: Mapping[str, Any], columns: Columns, choices: Mapping[str, str]) -> Pair:
    def value(name: str) -> Any:
        return columns.value(fields, name)

    def parsed(name: str) -> Any:
        return unpacked(value(name), brackets="[{")

    responses = value("response_a"), value("response_b")

    def text(name: str) -> str:
        return str("" if value(name) is None else value(name))

    listed = parsed("references")
    references = tuple(map(str, listed if isinstance(listed, list) else [listed] if listed else []))
    return Pair(
        index=record.index,
        place=record.place,
        votes=_votes(parsed("votes")),
        choices=_choices(fields, parsed("choice"), choices),
        responses=(str(responses[0]), str(responses[1])) if None not in responses else None,
        question=text("question"),
        references=references,
        instruction_key=_instruction_key(record.index, text, references),
    )


def _instruction_key(index: int, text: Callable[[str], str], references: tuple[str, ...]) -> str:
    identifier, image, question = (text(name).strip() for name in ("question_id", "image", "question"))
    if identifier:
        return json.dumps(["id", identifier])
    if image:
        return json.dumps(["image", image, question])
    # The same words about another image: a file that names no images tells them apart by what is right there.
    return json.dumps(["question", question, sorted(references)] if question else ["pair", index])


def _votes(cell: Any) -> tuple[Choice, ...]:
    if isinstance(cell, dict):
        if not all(isinstance(count, int) and 0 <= count <= 1000 for count in cell.values()):
            raise ValueError("a number of votes is none")
        cell = [vote for vote, count in cell.items() for _ in range(count)]
    if isinstance(cell, str):
        cell = cell.replace(",", " ").split()
    votes = [_choice(vote) for vote in cell] if isinstance(cell, list) else []
    known = tuple(vote for vote in votes if vote is not None)
    if not known:
        raise ValueError("there are no votes")
    return known


def _choices(fields: Mapping[str, Any], cell: Any, columns: Mapping[str, str]) -> dict[str, Choice | None]:
    if columns:
        return {name: _choice(fields.get(column)) for name, column in columns.items()}
    if isinstance(cell, dict):
        return {str(name): _choice(choice) for name, choice in cell.items()}
    return {"choice": _choice(cell)} if cell is not None else {}


def _choice(cell: Any) -> Choice | None:
    text = "" if cell is None else str(cell).strip().lower()
    if text and text not in _CHOICES:
        raise ValueError("a vote or choice is none of A, B, tie")
    return _CHOICES[text] if text else None
