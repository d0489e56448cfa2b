"""Read the user's files line by line, and make examples of sentence pairs."""

import hashlib
import logging
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Final, Generic, TypeVar

from pydantic_core import from_json

from gradewire_train import TrainingError
from gradewire_train.examples import Example, Files, numbered_lines

_BLANKS: Final = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")
_MOST_CHARACTERS: Final = 2_000
"""Maximum number of characters in a text; encoders read only about the first 500."""
_MOST_NAMES: Final = 10

_log = logging.getLogger(__name__)
T = TypeVar("T")
R = TypeVar("R")
Row = Mapping[str, Any]

_MOST_NEGATIVES: Final = 2
_NLI_LABELS: Final[Mapping[Any, str]] = {
    "entailment": "entailment", "neutral": "neutral", "contradiction": "contradiction",
    "e": "entailment", "n": "neutral", "c": "contradiction", "0": "entailment", "1": "neutral", "2": "contradiction",
    "-1": "", "-": "", "": "",
}  # fmt: skip
# The usual names, then those of the files of SNLI, Breaking NLI and MED, then those of HELP.
_NLI_FIELDS: Final = (
    ("premise", "hypothesis", "label"),
    ("sentence1", "sentence2", "gold_label"),
    ("ori_sentence", "new_sentence", "gold_label"),
)


class FieldError(ValueError):
    """Raised for an error in a line; the message states the field and its expected content."""


def read(path: Path, parse: Callable[[Row], T | None], *, skip_bad_lines: bool) -> Iterator[tuple[int, T]]:
    """Yield each line's number, from 1, with the result of `parse`; skip blank lines and None results.

    A line is a JSON object or, in a file with the ending .tsv, a table's row below the line with the columns' names.

    Raises:
        TrainingError: See `parsed`; or the file is not readable.
    """
    lines = numbered_lines(path)
    if path.suffix.lower() != ".tsv":
        return parsed(path, lines, lambda line: parse(_object(line)), skip_bad_lines=skip_bad_lines)
    names = _cells(next(lines, (0, b""))[1])
    return parsed(path, lines, lambda line: parse(_record(names, line)), skip_bad_lines=skip_bad_lines)


def parsed(
    origin: Path, entries: Iterable[tuple[int, R]], parse: Callable[[R], T | None], *, skip_bad_lines: bool
) -> Iterator[tuple[int, T]]:
    """Yield each entry's number with the result of `parse`; skip None results.

    An entry is bad if `parse` raises `FieldError`. If `skip_bad_lines` is set, bad entries are skipped, and a warning
    at the end contains their count and the first error.

    Raises:
        TrainingError: An entry is bad and not skipped, or no entry is usable.
    """
    skipped, first, good = 0, "", 0
    for number, entry in entries:
        try:
            found = parse(entry)
        except FieldError as error:
            if not skip_bad_lines:
                raise TrainingError(
                    f"{origin}, line {number}: {error}. Correct the line, or skip bad lines with --skip-bad-lines"
                ) from error
            skipped, first = skipped + 1, first or f"line {number}: {error}"
            continue
        good += 1
        if found is not None:
            yield number, found
    if skipped:
        _log.warning("%s: skipped %d bad lines; the first error: %s", origin, skipped, first)
    if not good:
        raise TrainingError(f"{origin} contains no usable line: {first or 'it is empty'}")


def text(row: Row, field: str) -> str:
    """Return a field's text in NFC, with a single blank in place of white space and control characters.

    Raises:
        FieldError: The field is missing, not a string, blank, or longer than 2 000 characters.
    """
    if field not in row:
        there = ", ".join(f"{name!r:.40}" for name in sorted(row)[:_MOST_NAMES])
        raise FieldError(f'field "{field}" is missing (fields: {there or "none"})')
    return clean(row[field], field)


def clean(value: object, field: str) -> str:
    """Return the value of `field`, normalised in the same way as in `text`."""
    if not isinstance(value, str):
        raise FieldError(f'field "{field}": must be a string, not {type(value).__name__}')
    if len(value) > _MOST_CHARACTERS:
        raise FieldError(f'field "{field}": {len(value)} characters, but the maximum is {_MOST_CHARACTERS}')
    cleaned = _BLANKS.sub(" ", unicodedata.normalize("NFC", value)).strip()
    if not cleaned:
        raise FieldError(f'field "{field}" is blank')
    return cleaned


def _object(line: bytes) -> Row:
    try:
        row = from_json(line)
    except ValueError as error:
        raise FieldError(f"not JSON in UTF-8 ({error})") from error
    if not isinstance(row, dict):
        raise FieldError(f"must be a JSON object, not {type(row).__name__}")
    return row


def _cells(line: bytes) -> list[str]:
    try:
        return [_unquoted(cell) for cell in line.decode("utf-8").rstrip("\r\n").split("\t")]
    except UnicodeDecodeError as error:
        raise FieldError(f"not UTF-8 ({error})") from error


def _unquoted(cell: str) -> str:
    """Return a cell's text. Some writers, such as HELP's, enclose texts with quotation marks, and double those inside.

    A cell without doubled marks is a text as it is, such as '"Yes"' in SNLI.
    """
    inner = cell[1:-1]
    is_written = len(cell) > 1 and cell[0] == cell[-1] == '"' and '""' in inner and '"' not in inner.replace('""', "")
    return inner.replace('""', '"') if is_written else cell


def _record(names: list[str], line: bytes) -> Row:
    cells = _cells(line)
    if len(cells) != len(names):
        raise FieldError(f"{len(cells)} columns, but the first line names {len(names)}")
    return dict(zip(names, cells, strict=True))


class Sample(Generic[T]):
    """A random sample of `size` keys (at least 1) with all of their entries.

    The sampled keys are those with the smallest seeded hashes, so the sample does not depend on the keys' order.
    """

    def __init__(self, size: int, *, seed: int) -> None:
        self._size = size
        self._salt = f"{seed}/".encode()
        self._groups: dict[bytes, list[T]] = {}
        self._limit: bytes | None = None

    def add(self, key: str, entry: T) -> None:
        """Add an entry for a key."""
        name = hashlib.blake2b(self._salt + key.encode("utf-8", "surrogatepass"), digest_size=12).digest()
        if self._limit is not None and name > self._limit:
            return
        self._groups.setdefault(name, []).append(entry)
        if len(self._groups) > 2 * self._size:
            self._cut()

    def groups(self) -> Iterator[list[T]]:
        """Return each sampled key's entries, in the random order of the hashes."""
        self._cut()
        return (self._groups[name] for name in sorted(self._groups))

    def _cut(self) -> None:
        names = sorted(self._groups)
        if len(names) > self._size:
            self._limit = names[self._size - 1]
            for name in names[self._size :]:
                del self._groups[name]


@dataclass(frozen=True, slots=True)
class Pair:
    """A premise, with sentences that follow from it or contradict it."""

    premise: str
    entailed: tuple[str, ...]
    contradicting: tuple[str, ...]


def read_nli(files: Files, most: int, *, seed: int) -> Iterator[Example]:
    """Yield at most `most` examples, one per premise, drawn at random from all files of sentence pairs.

    A line has `premise`, `hypothesis` and `label` (entailment, neutral, contradiction, or 0, 1, 2), the same under the
    names that public files use (`sentence1`, `sentence2`, `gold_label`, …), or `anchor`, `positive` and `negative` or
    `negatives`. Lines with the label "-" or -1, on which annotators disagreed, are skipped. A premise without a
    contradiction gets another premise's hypothesis as its negative.

    Raises:
        TrainingError: A file or a line is invalid.
    """
    sample: Sample[Pair] = Sample(most, seed=seed)
    for path in files.nli_pairs:
        for _, pair in read(path, lambda row: _pair(row, files.columns), skip_bad_lines=files.skip_bad_lines):
            sample.add(pair.premise, pair)
    groups = list(sample.groups())
    rng = Random(f"{seed}/nli")  # noqa: S311 - no secret
    elsewhere = [(group[0].premise, each) for group in groups for pair in group for each in pair.entailed]
    for group in groups:
        premise = group[0].premise
        entailed = [each for pair in group for each in pair.entailed if each != premise]
        against = [each for pair in group for each in pair.contradicting]
        if not entailed:
            continue
        positive = rng.choice(entailed)
        negatives = rng.sample(against, min(_MOST_NEGATIVES, len(against)))
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
            raise FieldError(f'field "{column("negatives")}": must be a list of strings')
        against = tuple(clean(each, column("negatives")) for each in negatives)
        return Pair(text(row, column("anchor")), (text(row, column("positive")),), against)
    usual, *others = _NLI_FIELDS
    given = tuple(map(column, usual))
    fields = given if given[0] in row else next((each for each in others if each[0] in row), given)
    premise, hypothesis = text(row, fields[0]), text(row, fields[1])
    written = row.get(fields[2])
    label = _NLI_LABELS.get(str(written).strip().lower()) if isinstance(written, str | int) else None
    if label is None:
        raise FieldError(
            f'field "{fields[2]}": must be entailment, neutral, contradiction, 0, 1 or 2, not {written!r:.40}'
        )
    entailed = (hypothesis,) if label == "entailment" else ()
    contradicting = (hypothesis,) if label == "contradiction" else ()
    return Pair(premise, entailed, contradicting) if entailed or contradicting else None
