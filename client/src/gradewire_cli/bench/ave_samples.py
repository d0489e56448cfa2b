"""Read and score the AVE benchmark's samples."""

from __future__ import annotations

import json
import math
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from gradewire_cli.bench.paper_tables import Columns, fields_of
from gradewire_cli.problems import InputError
from gradewire_cli.results.table_formats import write_text
from gradewire_cli.rows.cells import LeftOut, read_labels, unpacked
from gradewire_cli.rows.columns import RowOptions
from gradewire_cli.rows.formats import Record, printable
from gradewire_cli.rows.input_file import InputFile
from gradewire_cli.rows.row import is_wanted
from gradewire_stats.ave import AveRows, merged_descriptions
from gradewire_stats.calibration.labelled_rows import half_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from gradewire.transport import Transport
    from gradewire_cli.scoring.labelled_rows import LabelledRows
    from gradewire_cli.scoring.labelled_run import LabelledRun

PARTS = (1, 2, 3)
# AVE's samples have three descriptions.
MOST_DESCRIPTIONS = 100


@dataclass(frozen=True, slots=True)
class AveSample:
    """A graded answer, with rewritten versions of the answer and the references.

    Attributes:
        number: Index among the file's readable samples, from 0.
        descriptions: Part 2, the answer rewritten as sentences.
        shifted_references: Part 3, the references rewritten.
        label: Human grade on any scale, or None.
        told_apart: Values by column. They distinguish questions with the same words.
        chosen: True if the options select the sample and the sample has a label.
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

    def items(self) -> Iterator[dict[str, Any]]:
        """Yield the items to score, as rows of a labelled file."""
        yield self._item(1, self.references, self.prediction)
        for place, description in enumerate(self.descriptions, 1):
            yield self._item(2, self.references, description, f".{place}")
        if self.shifted_references:
            yield self._item(3, self.shifted_references, self.prediction)

    def _item(self, part: int, references: Sequence[str], prediction: str, place: str = "") -> dict[str, Any]:
        return {
            "id": f"{self.id}/{part}{place}",
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
    """A file's samples, and for each reason, the number of skipped rows or samples."""

    columns: Columns
    samples: list[AveSample] = field(default_factory=list)
    left_out: LeftOut = field(default_factory=LeftOut)

    @classmethod
    def read(
        cls,
        records: Iterable[Record],
        columns: Columns,
        *,
        where: Mapping[str, frozenset[str]],
        half: str | None,
    ) -> Self:
        """Read a file; raise InputError if no sample can be scored or an option names a missing column."""
        found = cls(columns=columns)
        present: dict[str, None] = {}
        for record, fields in fields_of(records, found.left_out):
            present |= dict.fromkeys(fields)
            try:
                sample, reason = _sample(record, fields, columns, len(found.samples))
            except ValueError as error:
                found.left_out.add(str(error), record.position)
                continue
            wanted = is_wanted(fields, where) and half in {None, half_of(sample.question)}
            if wanted and reason:
                found.left_out.add(reason, record.position)
            found.samples.append(sample if wanted and not reason else replace(sample, chosen=False))
        columns.check(present, where)
        if not any(sample.chosen for sample in found.samples):
            raise InputError(
                f"no sample can be scored: {'; '.join(found.sentences()) or 'the file has none'}"
                f" (columns: {', '.join(map(printable, present)) or 'none'}). Choose columns with --map FIELD=COLUMN"
            )
        return found

    @property
    def chosen(self) -> list[AveSample]:
        """The samples to measure."""
        return [sample for sample in self.samples if sample.chosen]

    def sentences(self) -> list[str]:
        """Return sentences on skipped rows and missing parts."""
        sentences = self.left_out.sentences("rows")
        chosen = self.chosen
        for part, name in ((2, "descriptions"), (3, "shifted_references")):
            if absent := sum(not getattr(sample, name) for sample in chosen):
                usual = ", ".join(self.columns.usual[name])
                sentences.append(f"{absent} of {len(chosen)} samples have no part {part} (columns {usual})")
        return sentences


def _sample(record: Record, fields: Mapping[str, Any], columns: Columns, number: int) -> tuple[AveSample, str]:
    """Return a sample and the reason to exclude it ("" means none); raise ValueError if the row is unusable."""
    values = {
        name: _values(fields, columns.of(name), spread=len(columns.named.get(name, ())) > 1) for name in columns.usual
    }

    def text(name: str) -> str:
        return values[name][0] if values[name] else ""

    if not values["references"]:
        raise ValueError("the row has no reference")
    if not values["prediction"]:
        raise ValueError("the row has no prediction")
    if len(values["descriptions"]) > MOST_DESCRIPTIONS:
        raise ValueError(f"the row has more than {MOST_DESCRIPTIONS} descriptions")
    spread = columns.of("labels") if "labels" in columns.named else ()
    listed = [fields.get(name) for name in spread] if len(spread) > 1 else columns.value(fields, "labels")
    human = read_labels(columns.value(fields, "label"), listed)
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


def _values(fields: Mapping[str, Any], columns: Sequence[str], *, spread: bool) -> tuple[str, ...]:
    """Return the strings in all of a field's columns if `spread` is True, else in the first column with strings."""
    found = [_texts(fields.get(name)) for name in columns]
    return tuple(text for texts in found for text in texts) if spread else next(filter(None, found), ())


def _texts(cell: Any) -> tuple[str, ...]:
    cell = unpacked(cell)
    entries = list(cell.values()) if isinstance(cell, dict) else cell if isinstance(cell, list) else [cell]
    return tuple(str(entry) for entry in entries if _is_text(entry))


def _is_text(entry: Any) -> bool:
    if isinstance(entry, float):
        return math.isfinite(entry)
    return isinstance(entry, str | int) and not isinstance(entry, bool) and bool(str(entry).strip())


def write_items(path: Path, samples: Sequence[AveSample]) -> None:
    """Write all samples' items as a labelled file for `gradewire score`."""
    lines = (
        json.dumps({**item, "sample": sample.number, "chosen": int(sample.chosen)}, ensure_ascii=False)
        for sample in samples
        for item in sample.items()
    )
    write_text(path, "".join(f"{line}\n" for line in lines))


def ave_scores(
    file: AveFile,
    run: LabelledRun,
    merge: Any,
    transport: Transport | None,
    check: Callable[[Sequence[str]], object],
) -> tuple[dict[str, AveRows], LabelledRows]:
    """Score the chosen samples, or read their scores. Return the scores by evaluator, and the labelled items."""
    with tempfile.TemporaryDirectory(prefix="gradewire-ave-") as directory:
        items = Path(directory) / "items.jsonl"
        write_items(items, file.samples)
        source = InputFile(
            (str(items),), RowOptions({}, {"chosen": frozenset("1")}, ("references", "prediction", "label"))
        )
        labelled = replace(run, source=source).collect(transport, check=check)
    judged = labelled.judged()
    chosen = file.chosen
    parts = [[item["part"] for item in sample.items()] for sample in chosen]
    most = max(map(len, parts))
    places = np.array([(row, part - 1, place) for row, own in enumerate(parts) for place, part in enumerate(own)]).T
    rows = {}
    for label, scores in judged.scores.items():
        cells = np.full((len(chosen), len(PARTS), most), np.nan)
        cells[tuple(places)] = scores
        rows[label] = AveRows(
            scores=np.stack([merged_descriptions(part, how=merge) for part in cells.transpose(1, 0, 2)], axis=1),
            labels=np.array([sample.label for sample in chosen], dtype=np.float64),
            datasets=[sample.dataset for sample in chosen],
            # Part 1's references distinguish questions with the same words.
            questions=[judged.questions[first] for first in np.flatnonzero(places[2] == 0).tolist()],
        )
    return rows, labelled
