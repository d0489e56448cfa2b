"""Samples of the AVE benchmark, read from a file: an answer, its descriptions, and its references in another form."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from gradewire.agreement.fitting.halves import half_of
from gradewire.cli.input.cells import unpacked
from gradewire.cli.input.labels import read_labels
from gradewire.cli.input.left_out import LeftOut
from gradewire.cli.input.record import Record, printable
from gradewire.cli.input.rows import is_wanted
from gradewire.cli.problems import InputError

# Columns in which a field stands, the first that a row has wins.
AVE_ALIASES: dict[str, tuple[str, ...]] = {
    "id": ("id",),
    "question": ("question",),
    "references": ("references", "reference", "answers", "answer"),
    "prediction": ("prediction", "pred", "response", "candidate"),
    "descriptions": ("descriptions", "description"),
    "shifted_references": ("shifted_references", "shifted_reference", "synonym"),
    "label": ("label", "human_score", "grade", "score"),
    "labels": ("labels", "annotations", "grades"),
    "dataset": ("dataset", "group"),
    "question_id": ("question_id",),
    "image": ("image_id", "image"),
}
# Fields that may stand in several columns, one value in each.
SPREAD_FIELDS = ("descriptions", "labels", "shifted_references")
PARTS = (1, 2, 3)
# Each is a text to be scored; AVE has three.
MOST_DESCRIPTIONS = 100


@dataclass(frozen=True, slots=True)
class AveSample:
    """A graded answer, and the same question and answer in other forms.

    Attributes:
        number: Place in the file among the samples that can be read, from 0.
        id: The file's id, else the number.
        question: "" where the file has none.
        references: At least one.
        prediction: The answer that people graded.
        descriptions: The same answer as sentences; empty without part 2.
        shifted_references: The references in another form; empty without part 3.
        label: Human grade, any scale; None without one.
        dataset: "" where the file has none.
        told_apart: Further columns that tell questions of the same words apart.
        chosen: Whether the options want it and it has a label.
    """

    number: int
    id: str
    question: str
    references: tuple[str, ...]
    prediction: str
    descriptions: tuple[str, ...]
    shifted_references: tuple[str, ...]
    label: float | None
    dataset: str
    told_apart: Mapping[str, str]
    chosen: bool

    def parts(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """What is scored, each with its part, as a row of a labelled file."""
        yield 1, self._item(1, "1", self.references, self.prediction)
        for place, description in enumerate(self.descriptions, 1):
            yield 2, self._item(2, f"2.{place}", self.references, description)
        if self.shifted_references:
            yield 3, self._item(3, "3", self.shifted_references, self.prediction)

    def _item(self, part: int, name: str, references: Sequence[str], prediction: str) -> dict[str, Any]:
        return {
            "id": f"{self.id}/{name}",
            "question": self.question,
            "references": list(references),
            "prediction": prediction,
            "label": self.label,
            "dataset": self.dataset,
            "part": part,
            "half": half_of(self.question),
            **self.told_apart,
        }


@dataclass(slots=True, kw_only=True)
class AveFile:
    """The samples of a file.

    Attributes:
        samples: Those that can be read.
        left_out: Rows and samples that enter no figure.
    """

    samples: list[AveSample] = field(default_factory=list)
    left_out: LeftOut = field(default_factory=LeftOut)

    @classmethod
    def read(
        cls,
        records: Iterable[Record],
        columns: Mapping[str, Sequence[str]],
        *,
        where: Mapping[str, frozenset[str]],
        half: str | None,
    ) -> Self:
        """Reads a file.

        Args:
            records: Its rows.
            columns: Columns of a field, from --map; several for those of `SPREAD_FIELDS`.
            where: Allowed values by column; other samples are not chosen.
            half: "a" or "b": samples whose question is of the other half are not chosen.

        Raises:
            InputError: There is no sample to be judged, or a column is in no row; says what there is.
        """
        found = cls()
        present: dict[str, None] = {}
        for record in records:
            present |= dict.fromkeys(record.fields or ())
            try:
                sample, reason = _sample(record, columns, len(found.samples))
            except ValueError as error:
                found.left_out.add(str(error), record.place)
                continue
            wanted = is_wanted(record.fields or {}, where) and half in {None, half_of(sample.question)}
            if wanted and reason:
                found.left_out.add(reason, record.place)
            found.samples.append(sample if wanted and not reason else replace(sample, chosen=False))
        _check_columns(present, columns, where)
        if not any(sample.chosen for sample in found.samples):
            raise InputError(
                f"there is no sample to be judged: {'; '.join(found.sentences()) or 'the file has none'}"
                f" (its columns: {', '.join(map(printable, present)) or 'none'}; --map FIELD=COLUMN names others)"
            )
        return found

    @property
    def chosen(self) -> list[AveSample]:
        """Samples that enter the figures."""
        return [sample for sample in self.samples if sample.chosen]

    def sentences(self) -> list[str]:
        """What was left out and why."""
        sentences = self.left_out.sentences("rows")
        chosen = self.chosen
        for part, name in ((2, "descriptions"), (3, "shifted_references")):
            if absent := sum(not getattr(sample, name) for sample in chosen):
                sentences.append(
                    f"{absent} of {len(chosen)} samples have no part {part} (looked for {', '.join(AVE_ALIASES[name])})"
                )
        return sentences


def _sample(record: Record, columns: Mapping[str, Sequence[str]], number: int) -> tuple[AveSample, str]:
    """A sample, and why it enters no figure, or ""; ValueError where the row cannot be read."""
    if record.fields is None:
        raise ValueError("the row cannot be read")
    fields = record.fields
    values = {name: _values(fields, columns.get(name, ()), usual) for name, usual in AVE_ALIASES.items()}

    def text(name: str) -> str:
        return values[name][0] if values[name] else ""

    if not values["references"]:
        raise ValueError("the row has no reference")
    if not values["prediction"]:
        raise ValueError("the row has no prediction")
    if len(values["descriptions"]) > MOST_DESCRIPTIONS:
        raise ValueError(f"the row has more than {MOST_DESCRIPTIONS} descriptions")
    own = _cell(fields, columns.get("label", AVE_ALIASES["label"]))
    spread = columns.get("labels", ())
    listed = (
        [fields.get(name) for name in spread] if len(spread) > 1 else _cell(fields, spread or AVE_ALIASES["labels"])
    )
    human = read_labels(own, listed)
    reason = "the label cannot be read as a number" if human.unreadable else ""
    sample = AveSample(
        number=number,
        id=text("id") or str(record.index),
        question=text("question"),
        references=values["references"],
        prediction=text("prediction"),
        descriptions=values["descriptions"],
        shifted_references=values["shifted_references"],
        label=human.value,
        dataset=text("dataset"),
        told_apart={name: text(name) for name in ("question_id", "image") if text(name)},
        chosen=True,
    )
    return sample, reason or ("the row has no label" if human.value is None else "")


def _values(fields: Mapping[str, Any], columns: Sequence[str], usual: Sequence[str]) -> tuple[str, ...]:
    """Texts of a field: of all its columns where --map names several, else of the first that has some."""
    if len(columns) > 1:
        return tuple(text for name in columns for text in _texts(fields.get(name)))
    return next((found for name in columns or usual if (found := _texts(fields.get(name)))), ())


def _texts(cell: Any) -> tuple[str, ...]:
    cell = unpacked(cell)
    # A mapping names its texts, by description or by annotator.
    entries = list(cell.values()) if isinstance(cell, dict) else cell if isinstance(cell, list) else [cell]
    return tuple(str(entry) for entry in entries if _is_text(entry))


def _is_text(entry: Any) -> bool:
    """Whether an entry is a text with something in it, or a number that stands for one; NaN says that there is none."""
    if isinstance(entry, float):
        return math.isfinite(entry)
    return isinstance(entry, str | int) and not isinstance(entry, bool) and bool(str(entry).strip())


def _cell(fields: Mapping[str, Any], columns: Sequence[str]) -> Any:
    return next((fields[name] for name in columns if fields.get(name) is not None), None)


def _check_columns(
    present: Iterable[str], columns: Mapping[str, Sequence[str]], where: Mapping[str, frozenset[str]]
) -> None:
    there = list(present)
    for column in (*(name for names in columns.values() for name in names), *where):
        if there and column not in there:
            raise InputError(f"there is no column {column!r}; the columns are: {', '.join(map(printable, there))}")
