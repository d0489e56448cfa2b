"""Human labels of a row, one number or one from each annotator, and counts of rows that are left out."""

from __future__ import annotations

import math
import reprlib
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gradewire._input import is_missing, plain, unpacked_list
from gradewire_cli.problems import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(slots=True)
class LeftOut:
    """Counts of what was left out.

    Attributes:
        counts: By reason.
        first: Place of the first of each reason.
    """

    counts: Counter[str] = field(default_factory=Counter)
    first: dict[str, str] = field(default_factory=dict)

    def add(self, reason: str, place: str) -> None:
        """Counts one more."""
        self.counts[reason] += 1
        self.first.setdefault(reason, place)

    def sentences(self, what: str) -> list[str]:
        """A sentence for each reason; `what` was left out, in the plural."""
        return [
            f"{count} {what} were left out: {reason} (first at {self.first[reason]})"
            for reason, count in self.counts.items()
        ]


_WORDS = {
    **dict.fromkeys(("true", "yes", "correct", "right"), 1.0),
    **dict.fromkeys(("false", "no", "incorrect", "wrong"), 0.0),
}
NO_WORDS: Mapping[str, float] = {}


@dataclass(frozen=True, slots=True)
class HumanLabel:
    """What people said of a row.

    Attributes:
        value: The row's own label, else the mean of its annotators; None where there is none or it cannot be read.
        annotations: Label of each annotator, None where that one said nothing; empty without a list.
        unreadable: What stands in the place of a label and cannot be read, else "".
    """

    value: float | None = None
    annotations: tuple[float | None, ...] = ()
    unreadable: str = ""


def read_label_map(text: str) -> dict[str, float]:
    """Reads --label-map: WORD=NUMBER,WORD=NUMBER; words in small letters.

    Raises:
        InputError: It cannot be understood.
    """
    words = {}
    for pair in filter(None, text.split(",")):
        word, equals, number = pair.rpartition("=")
        try:
            value = float(number)
        except ValueError:
            value = math.nan
        if not equals or not word.strip() or not math.isfinite(value):
            raise InputError(f"--label-map {text}: write WORD=NUMBER,WORD=NUMBER, for instance correct=1,partly=0.5")
        words[word.strip().lower()] = value
    return words


def read_labels(own: Any, listed: Any, words: Mapping[str, float] = NO_WORDS) -> HumanLabel:
    """Reads the labels of a row.

    Args:
        own: Cell of the label: a number, a truth value, a word such as yes or incorrect, a text of these, or a list of
            these.
        listed: Cell of the annotators' labels, a list or its text; None without one.
        words: What further words mean, and numbers that mean others; in small letters.
    """
    read = []
    for cell in (own, listed):
        try:
            read.append(_read(cell, words))
        except (ValueError, OverflowError, RecursionError):
            return HumanLabel(unreadable=reprlib.repr(cell))
    value, annotations = read[0], _listed(read[1])
    if isinstance(value, list):
        annotations, value = annotations or tuple(value), None
    known = [label for label in annotations if label is not None]
    if value is None and known:
        value = sum(known) / len(known)
        if not math.isfinite(value):
            return HumanLabel(unreadable=reprlib.repr(annotations))
    return HumanLabel(value, annotations if known else ())


def _listed(read: float | list[float | None] | None) -> tuple[float | None, ...]:
    if isinstance(read, list):
        return tuple(read)
    return () if read is None else (read,)


def _read(cell: Any, words: Mapping[str, float]) -> float | list[float | None] | None:
    cell = plain(cell)
    if isinstance(cell, str) and (unpacked := unpacked_list(cell)) is not None:
        cell = unpacked
    return [_number(entry, words) for entry in cell] if isinstance(cell, list) else _number(cell, words)


def _number(value: Any, words: Mapping[str, float]) -> float | None:
    """A label as a number, None where there is none; ValueError or OverflowError where it is no finite one."""
    value = plain(value)
    text = str(value).strip().lower()
    if not text or is_no_label(value):
        return None
    # Table libraries write the grade 4 as 4.0, or true, where another row has none.
    named = words.get(text, words.get(text.removesuffix(".0")))
    if named is not None:
        return named
    if _is_number(text) and any(map(_is_number, words)):
        raise ValueError("a grade that --label-map leaves out")
    if isinstance(value, str):
        value = _WORDS.get(text, text)
    number = float(value) if isinstance(value, str | int | float) else math.nan
    if not math.isfinite(number):
        raise ValueError("a label is a finite number")
    return number


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def is_no_label(value: Any) -> bool:
    """Whether a cell says that there is no label: table libraries write NaN where one is missing, never infinity."""
    return is_missing(value)
