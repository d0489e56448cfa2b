"""Sentence pairs with labels, or triplets, for the task ``nli``."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Final

from gradewire_train.examples import Example
from gradewire_train.texts.readers.jsonl import FieldError, Row, clean, read, text
from gradewire_train.texts.readers.sample import Sample

_NEGATIVES: Final = 2
_LABELS: Final[Mapping[Any, str]] = {
    "entailment": "entailment", "neutral": "neutral", "contradiction": "contradiction",
    "e": "entailment", "n": "neutral", "c": "contradiction", "0": "entailment", "1": "neutral", "2": "contradiction",
    "-1": "", "-": "", "": "",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Pair:
    """A sentence that follows from a premise, or contradicts it."""

    premise: str
    entailed: tuple[str, ...]
    contradicting: tuple[str, ...]


def read_nli(
    paths: Iterable[Path], most: int, *, seed: int, columns: Mapping[str, str], skip_bad_lines: bool
) -> Iterator[Example]:
    """At most `most` examples, one for a premise, drawn by seed from all files.

    A line has `premise`, `hypothesis` and `label` (entailment, neutral, contradiction, or 0, 1, 2; lines whose label
    is "-" or -1, on which annotators disagreed, are left out), or `anchor`, `positive` and `negative` or `negatives`.
    Premises without a contradiction get another premise's hypothesis as negative.

    Raises:
        TrainingError: A file or a line is not as it should be.
    """
    sample: Sample[Pair] = Sample(most, seed=seed)
    for path in paths:
        for _, pair in read(path, lambda row: _pair(row, columns), skip_bad_lines=skip_bad_lines):
            sample.add(pair.premise, pair)
    groups = list(sample.groups())
    rng = Random(f"{seed}/nli")  # noqa: S311 - texts, not secrets
    elsewhere = [(group[0].premise, each) for group in groups for pair in group for each in pair.entailed]
    for group in groups:
        premise = group[0].premise
        entailed = [each for pair in group for each in pair.entailed if each != premise]
        against = [each for pair in group for each in pair.contradicting]
        if not entailed:
            continue
        positive = rng.choice(entailed)
        negatives = rng.sample(against, min(_NEGATIVES, len(against)))
        other_premise, other = rng.choice(elsewhere)
        if not negatives and other_premise != premise and other not in entailed:
            negatives.append(other)
        negatives = [each for each in negatives if each not in {premise, *entailed}]
        yield Example("nli", "", premise, positive, tuple(negatives))


def _pair(row: Row, columns: Mapping[str, str]) -> Pair | None:
    def column(name: str) -> str:
        return columns.get(name, name)

    if column("anchor") in row:
        negatives = row.get(column("negatives"), [row[column("negative")]] if column("negative") in row else [])
        if not isinstance(negatives, list):
            raise FieldError(f'field "{column("negatives")}": a list of texts is expected')
        against = tuple(clean(each, column("negatives")) for each in negatives)
        return Pair(text(row, column("anchor")), (text(row, column("positive")),), against)
    premise, hypothesis = text(row, column("premise")), text(row, column("hypothesis"))
    written = row.get(column("label"))
    label = _LABELS.get(str(written).strip().lower()) if isinstance(written, str | int) else None
    if label is None:
        raise FieldError(
            f'field "{column("label")}": entailment, neutral, contradiction, 0, 1 or 2 is expected, not {written!r:.40}'
        )
    entailed = (hypothesis,) if label == "entailment" else ()
    contradicting = (hypothesis,) if label == "contradiction" else ()
    return Pair(premise, entailed, contradicting) if entailed or contradicting else None
