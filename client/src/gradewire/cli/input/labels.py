"""Human labels of a row: one number, or one from each of several annotators."""

from __future__ import annotations

import json
import math
import reprlib
from dataclasses import dataclass
from typing import Any

_WORDS = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0}


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


def read_labels(own: Any, listed: Any) -> HumanLabel:
    """Reads the labels of a row.

    Args:
        own: Cell of the label: a number, a truth value, yes or no, a text of these, or a list of these.
        listed: Cell of the annotators' labels, a list or its JSON; None without one.
    """
    read = []
    for cell in (own, listed):
        try:
            read.append(_read(cell))
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


def _read(cell: Any) -> float | list[float | None] | None:
    if isinstance(cell, str) and cell.lstrip().startswith("["):
        cell = json.loads(cell)
    return [_number(entry) for entry in cell] if isinstance(cell, list) else _number(cell)


def _number(value: Any) -> float | None:
    """A label as a number, None where there is none; ValueError or OverflowError where it is no finite one."""
    if isinstance(value, str):
        text = value.strip().lower()
        value = _WORDS.get(text, text)
    if value == "" or is_no_label(value):
        return None
    number = float(value) if isinstance(value, str | int | float) else math.nan
    if not math.isfinite(number):
        raise ValueError("a label is a finite number")
    return number


def is_no_label(value: Any) -> bool:
    """Whether a cell says that there is no label: table libraries write NaN where one is missing, never infinity."""
    return value is None or (isinstance(value, float) and math.isnan(value))
