"""The real answers that attacks are built on: to questions about texts and about pictures, wrong ones and right ones.

Wrong and right is what people say. For development they come from rows on which prompts were chosen, too; the held-back
half takes them from the rows on which figures are reported. Answers to yes/no questions are left out: a rule grades
them, not the judge.
"""

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from benchmarks.common.rows import Row, read_lines, read_rows
from benchmarks.judges.agreement import MODELS, development_rows, test_rows
from benchmarks.judges.attacks.families import Half
from benchmarks.judges.visual import ROWS as VISUAL_ROWS

TEXTS: Final = "evouna_dev.jsonl"
_MOST_WORDS: Final = 40
"""Longer answers hold so much that what is put around them is a small part, and they cost the judge's time."""
_OTHERS: Final = 9


def read_texts(data: Path) -> list[Row]:
    """All answers to questions about texts."""
    return read_rows(data / TEXTS, MODELS)


def text_rows(rows: Sequence[Row], half: Half, label: int, count: int) -> list[Row]:
    """Answers to `count` different questions about texts with this label, the same ones every time."""
    chosen = development_rows(rows) if half is Half.DEVELOPMENT else test_rows(rows)
    return _drawn(chosen, f"text {half} {label}", label, count)


def visual_rows(half: Half, label: int, count: int) -> list[Row]:
    """The same about pictures, with captions."""
    named = "development" if half is Half.DEVELOPMENT else "held_out"
    rows = [row for row in read_lines(VISUAL_ROWS) if row["half"] == named]
    return _drawn(rows, f"visual {half} {label}", label, count)


def key_of(row: Row) -> str:
    """One reference: the most frequent vote, else the first alias."""
    return Counter(row["references"]).most_common(1)[0][0]


def other_keys(row: Row, rows: Iterable[Row]) -> list[str]:
    """Right answers to nine other questions, of the same form: with or without digits, of one, two or more words."""
    own = {text.casefold() for text in row["references"]}
    words = {word for text in own for word in text.split()}
    keys = dict.fromkeys(key_of(other).strip() for other in rows if other["question"] != row["question"])
    fit = [key for key in keys if _form(key) == _form(key_of(row)) and words.isdisjoint(key.casefold().split())]
    rest = [key for key in keys if words.isdisjoint(key.casefold().split()) and key not in fit]
    draw = random.Random(f"others {row['id']}")  # noqa: S311 - a sample, not a secret
    chosen = draw.sample(fit, min(_OTHERS, len(fit)))
    return chosen + draw.sample(rest, _OTHERS - len(chosen))


def _drawn(rows: Iterable[Row], seed: str, label: int, count: int) -> list[Row]:
    fit = [row for row in rows if row["label"] == label and _is_asked(row)]
    draw = random.Random(f"attacks {seed}")  # noqa: S311 - a sample, not a secret
    # One answer a question, so that rows are independent draws.
    first: dict[str, Row] = {}
    for row in draw.sample(fit, len(fit)):
        first.setdefault(row["question"], row)
    return list(first.values())[:count]


def _is_asked(row: Row) -> bool:
    said = any(letter.isalnum() for letter in row["prediction"])
    binary = key_of(row).strip(" .").casefold() in {"yes", "no"}
    return said and not binary and len(row["prediction"].split()) <= _MOST_WORDS


def _form(key: str) -> tuple[bool, int]:
    return any(letter.isdigit() for letter in key), min(len(key.split()), 3)
