"""Convert the public files to our rows; stop at a malformed row."""

import csv
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

Row = dict[str, Any]

_MODELS: Final = ("fid", "gpt35", "chatgpt", "gpt4", "newbing")
_DEVELOPMENT_BYTE: Final = 77
"""Limit for the first byte of a question's hash; questions below the limit (30 %) are the development part."""
_LABELS: Final[Mapping[str, int]] = {"Yes": 1, "No": 0}


class ConversionError(Exception):
    """An error for a source in an unexpected format; the message states file and line."""


def evouna(sources: Sequence[Path]) -> Iterator[Row]:
    """Yield EVOUNA's development rows from NQ.json, then TQ.json."""
    for dataset, path in zip(("nq", "tq"), sources, strict=True):
        for number, question in enumerate(json.loads(path.read_text("utf-8"))):
            try:
                yield from _answers_of(dataset, number, question)
            except (KeyError, TypeError, AttributeError) as error:
                raise ConversionError(f"{path.name}: question {number} is not in EVOUNA's format: {error!r}") from error


def _answers_of(dataset: str, number: int, question: Mapping[str, Any]) -> Iterator[Row]:
    text = question["question"]
    if question["improper"] or hashlib.sha256(text.encode()).digest()[0] >= _DEVELOPMENT_BYTE:
        return
    references = [part.strip() for part in question["golden_answer"].split("/")]
    for model in _MODELS:
        verdict = question[f"judge_{model}"]
        # An answer without a judgement has the verdict null or "nan".
        if isinstance(verdict, bool):
            yield {
                "id": f"{dataset}-{number}-{model}",
                "question": text,
                "references": [reference for reference in references if reference],
                "prediction": question[f"answer_{model}"].strip(),
                "label": int(verdict),
                "dataset": dataset,
                "model": model,
            }


def nq301(sources: Sequence[Path]) -> Iterator[Row]:
    """Yield an NQ301 row for each line in the annotators' table."""
    annotations, answered = sources
    references: dict[str, list[str]] = {}
    for number, line in enumerate(answered.read_text("utf-8").splitlines(), 1):
        try:
            record = json.loads(line)
            references[record["question"]] = record["answer"]
        except (KeyError, TypeError, ValueError) as error:
            raise ConversionError(f"{answered.name}: line {number} has no question and answer: {error!r}") from error
    with annotations.open(encoding="utf-8", newline="") as lines:
        for number, record in enumerate(csv.DictReader(lines, delimiter="\t")):
            try:
                yield _annotated(number, record, references)
            except (KeyError, TypeError, AttributeError) as error:
                raise ConversionError(
                    f"{annotations.name}: row {number} is not in NQ301's format: {error!r}"
                ) from error


def _annotated(number: int, record: Mapping[str, str], references: Mapping[str, list[str]]) -> Row:
    said = [record[f"annotator{annotator}"] for annotator in (1, 2, 3)]
    return {
        "id": f"nq301-{number}",
        "question": record["Question"],
        "references": references[record["Question"]],
        "prediction": record["Model answer"].strip(),
        "labels": [_LABELS[word] for word in said if word],
        "label": _LABELS[record["Acceptable?"]],
        "dataset": "nq301",
    }


CONVERSIONS: Final[Mapping[str, Callable[[Sequence[Path]], Iterator[Row]]]] = {"evouna": evouna, "nq301": nq301}
"""Conversions by the set's name; a conversion accepts the set's sources in the table's order."""
