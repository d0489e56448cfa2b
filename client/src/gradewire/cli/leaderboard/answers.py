"""Answers of several models, by instruction."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Self

import click

from gradewire.cli.choosing.pairs import Answer, AnswerPair
from gradewire.cli.input.left_out import LeftOut
from gradewire.cli.input.pictures import with_picture_digests
from gradewire.cli.input.record import printable
from gradewire.cli.leaderboard.pairs import NAME_CHARACTERS
from gradewire.cli.problems import InputError
from gradewire.ratings import PairPool

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradewire.cli.input.files import InputFile
    from gradewire.cli.input.rows import Row
    from gradewire.ratings import ChosenPair

PAIR = 2
# Names a row, or is in a digest of its own.
_NOT_COMPARED = frozenset({"id", "images"})


@dataclass(slots=True)
class Answers:
    """Answers to compare.

    Attributes:
        rows: By instruction in the order of the files, then by model.
        left_out: Rows that cannot be compared.
        has_synthetic: Whether the rows carry synthetic answers.
    """

    rows: dict[str, dict[str, Row]] = field(default_factory=dict)
    left_out: LeftOut = field(default_factory=LeftOut)
    has_synthetic: bool = False

    @classmethod
    def read(cls, source: InputFile) -> Self:
        """Reads files of answers; a row without a model is of the model that its file is called by.

        Raises:
            InputError: A file cannot be used as a whole, or no two answers are to the same question.
        """
        opened = source.open()
        for note in opened.notes:
            click.echo(note, err=True)
        found = cls(has_synthetic=opened.has_synthetic)
        name = source.shown_paths[0]
        for row in opened.rows:
            instruction = row.question_id or row.question_key
            model = printable(row.model.strip() or Path(row.file or name).name.split(".")[0])
            there = found.rows.get(instruction, {})
            if row.item is None:
                found.left_out.add("the row cannot be read", row.problem)
            elif not instruction:
                found.left_out.add("nothing tells which question it answers", row.place)
            elif len(model) > NAME_CHARACTERS:
                found.left_out.add(f"the name of its model has more than {NAME_CHARACTERS} characters", row.place)
            elif model in there:
                found.left_out.add("the model has an answer to the question already", row.place)
            else:
                found.rows.setdefault(instruction, {})[model] = row
        for note in opened.late_notes:
            click.echo(note, err=True)
        if all(len(rows) < PAIR for rows in found.rows.values()):
            why = found.left_out.sentences("rows") or [f"models: {', '.join(found.models) or 'none'}"]
            raise InputError(
                f"{source.name}: no two answers are to the same question, so that nothing can be compared: "
                f"{'; '.join(why)}; --map model=COLUMN and --map question_id=COLUMN tell what belongs together"
            )
        return found

    @property
    def models(self) -> list[str]:
        """Their names, sorted."""
        return sorted({model for rows in self.rows.values() for model in rows})

    def show_pictures(self, folder: Path) -> None:
        """Tells answers apart by the pictures too that their rows name from this folder."""
        for rows in self.rows.values():
            rows.update(zip(rows, with_picture_digests(list(rows.values()), folder), strict=True))

    def pool(self, models: Sequence[str]) -> PairPool:
        """All pairs of answers, with these models by number."""
        numbers = {model: number for number, model in enumerate(models)}
        return PairPool(len(models), {key: [numbers[model] for model in rows] for key, rows in self.rows.items()})

    def pair(self, chosen: ChosenPair, models: Sequence[str], index: int) -> AnswerPair:
        """The answers of a pair."""
        rows = self.rows[chosen.instruction]
        a, b = models[chosen.first], models[chosen.second]
        return AnswerPair(index=index, model_a=a, model_b=b, a=Answer(rows[a]), b=Answer(rows[b]))


def texts_digest(pair: AnswerPair) -> str:
    """32 hex digits over what is compared: models, texts and pictures, but neither ids nor places in a file.

    A file more or less beside these leaves their pairs what they were.
    """
    content = [
        [
            model,
            {name: value for name, value in (answer.row.item or {}).items() if name not in _NOT_COMPARED},
            answer.row.picture_digest,
        ]
        for model, answer in ((pair.model_a, pair.a), (pair.model_b, pair.b))
    ]
    encoded = json.dumps(content, sort_keys=True, ensure_ascii=True, default=repr).encode()
    return hashlib.blake2b(encoded, digest_size=16).hexdigest()
