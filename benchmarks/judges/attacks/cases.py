"""Make cases from real answers: right answers, and wrong answers unchanged and attacked."""

import random
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from benchmarks.common.rows import Row, read_lines, read_rows
from benchmarks.judges.agreement import MODELS, development_rows, test_rows
from benchmarks.judges.visual import ROWS as VISUAL_ROWS

WORDINGS: Final = Path(__file__).with_name("wordings.toml")
RIGHT: Final = "right"
"""Name of the table with wordings for right answers."""
_FIELD: Final = re.compile(r"\{(answer|question|reference|other[1-9])\}")
TEXTS: Final = "evouna_dev.jsonl"
_MOST_WORDS: Final = 40
"""Maximum words in an answer; in a longer answer, the attack is only a small part."""
_OTHERS: Final = 9
PLAIN: Final = "plain"


class Half(StrEnum):
    """The half of the wordings for developing guards or for reports."""

    DEVELOPMENT = "development"
    HELD_BACK = "held_back"


@dataclass(frozen=True, slots=True)
class Wording:
    """A text that contains a wrong answer.

    Attributes:
        place: Position in the family.
        template: Text with the fields {answer}, {question}, {reference}, {other1} to {other9}. Other braces are
            literal.
    """

    place: int
    template: str

    @property
    def fields(self) -> set[str]:
        """The names of the fields in the template."""
        return set(_FIELD.findall(self.template))

    def written(self, texts: Mapping[str, str]) -> str:
        """Return the template with its fields filled in."""
        return _FIELD.sub(lambda match: texts[match[1]], self.template)


@dataclass(frozen=True, slots=True)
class Family:
    """A family of similar attacks.

    Attributes:
        wordings: At least four wordings.
        in_caption: True if the caption contains the attack and the wrong answer is unchanged.
        held_back: True if no wording is in the half for development.
    """

    name: str
    about: str
    wordings: tuple[Wording, ...]
    in_caption: bool
    held_back: bool

    def of_half(self, half: Half) -> Sequence[Wording]:
        """Return a half's wordings; for a held-back family, all or none."""
        if self.held_back:
            return self.wordings if half is Half.HELD_BACK else ()
        return self.wordings[half is Half.HELD_BACK :: 2]


def read_families(path: Path = WORDINGS) -> tuple[Family, ...]:
    """Return all families, in alphabetical order."""
    tables = _tables(path)
    names = sorted(name for name in tables if name != RIGHT)
    return tuple(
        Family(
            name,
            tables[name]["about"],
            _wordings(tables[name]["wordings"]),
            in_caption=tables[name].get("in_caption", False),
            held_back=place % 2 == 0,
        )
        for place, name in enumerate(names)
    )


def read_right(path: Path = WORDINGS) -> tuple[Wording, ...]:
    """Return wordings for right answers, which share words with attacks."""
    return _wordings(_tables(path)[RIGHT]["wordings"])


def _tables(path: Path) -> dict[str, dict[str, Any]]:
    return tomllib.loads(path.read_text("utf-8"))


def _wordings(templates: Sequence[str]) -> tuple[Wording, ...]:
    return tuple(Wording(place, template) for place, template in enumerate(templates))


def read_texts(data: Path) -> list[Row]:
    """Return all answers to questions about texts."""
    return read_rows(data / TEXTS, MODELS)


def text_rows(rows: Sequence[Row], half: Half, label: int, count: int) -> list[Row]:
    """Return answers with this label to `count` different questions about texts."""
    chosen = development_rows(rows) if half is Half.DEVELOPMENT else test_rows(rows)
    return _drawn(chosen, f"text {half} {label}", label, count)


def visual_rows(half: Half, label: int, count: int) -> list[Row]:
    """Return answers with this label to `count` different questions about pictures."""
    named = "development" if half is Half.DEVELOPMENT else "held_out"
    rows = [row for row in read_lines(VISUAL_ROWS) if row["half"] == named]
    return _drawn(rows, f"visual {half} {label}", label, count)


def key_of(row: Row) -> str:
    """Return the row's main reference: the most frequent vote or the first alias."""
    return Counter(row["references"]).most_common(1)[0][0]


def other_keys(row: Row, rows: Iterable[Row]) -> list[str]:
    """Return right answers to nine other questions, preferably similar in words and use of digits."""
    own = {text.casefold() for text in row["references"]}
    words = {word for text in own for word in text.split()}
    keys = dict.fromkeys(key_of(other).strip() for other in rows if other["question"] != row["question"])
    fit = [key for key in keys if _form(key) == _form(key_of(row)) and words.isdisjoint(key.casefold().split())]
    rest = [key for key in keys if words.isdisjoint(key.casefold().split()) and key not in fit]
    draw = random.Random(f"others {row['id']}")  # noqa: S311 - no secret
    chosen = draw.sample(fit, min(_OTHERS, len(fit)))
    return chosen + draw.sample(rest, _OTHERS - len(chosen))


def _drawn(rows: Iterable[Row], seed: str, label: int, count: int) -> list[Row]:
    fit = [row for row in rows if row["label"] == label and _is_asked(row)]
    draw = random.Random(f"attacks {seed}")  # noqa: S311 - no secret
    # Draw one answer per question, so that the rows are independent.
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


@dataclass(frozen=True, slots=True)
class Case:
    """An answer to score.

    Attributes:
        family: Name of the family; `PLAIN` for an unchanged wrong answer, `RIGHT` for a right answer.
        wording: Position of the wording in its family; -1 without a wording.
    """

    item: dict[str, Any]
    row: str
    family: str
    wording: int
    right: bool

    @property
    def is_attack(self) -> bool:
        """True for a wrong answer that tries to pass as right."""
        return not self.right and self.family != PLAIN


def attacked(rows: Sequence[Row], families: Sequence[Family], half: Half, pool: Sequence[Row]) -> Iterator[Case]:
    """Yield wrong answers, unchanged and attacked; skip caption attacks for rows without captions.

    The main references in `pool` become the other answers in a wording.
    """
    for place, row in enumerate(rows):
        yield Case(_item(row, PLAIN, row["prediction"]), row["id"], PLAIN, -1, right=False)
        others = other_keys(row, pool)
        for family in families:
            wordings = family.of_half(half)
            if not wordings or (family.in_caption and "captions" not in row):
                continue
            wording = wordings[place % len(wordings)]
            text = written(wording, row, others)
            if family.in_caption:
                item = _item(row, family.name, row["prediction"])
                item["captions"] = [*row["captions"], text]
            else:
                item = _item(row, family.name, text)
            yield Case(item, row["id"], family.name, wording.place, right=False)


def right_answers(rows: Sequence[Row], wordings: Sequence[Wording], pool: Sequence[Row]) -> Iterator[Case]:
    """Yield each right answer, unchanged and in one of the wordings."""
    plain, *others = wordings
    for place, row in enumerate(rows):
        keys = other_keys(row, pool)
        for wording in (plain, others[place % len(others)]):
            name = f"{RIGHT}/{wording.place}"
            yield Case(_item(row, name, written(wording, row, keys)), row["id"], RIGHT, wording.place, right=True)


def written(wording: Wording, row: Row, others: Sequence[str]) -> str:
    """Return a wording filled in with a row's texts."""
    options = {f"other{number}": text for number, text in enumerate(others, start=1)}
    texts = {"answer": row["prediction"], "question": row["question"], "reference": key_of(row)}
    return wording.written({name: text.strip() for name, text in (texts | options).items()})


def _item(row: Row, name: str, prediction: str) -> dict[str, Any]:
    item = {"id": f"{row['id']}/{name}", "question": row["question"], "references": row["references"]}
    return item | ({"captions": row["captions"]} if "captions" in row else {}) | {"prediction": prediction}


@dataclass(frozen=True, slots=True)
class Counts:
    """The numbers of wrong answers about texts and about pictures, and of right answers for each kind."""

    texts: int
    pictures: int
    right: int


def cases_of(half: Half, data: Path, counts: Counts) -> tuple[list[Case], list[Case]]:
    """Return a half's attacks in answers, with right answers, and its attacks in captions."""
    families, rows = read_families(), read_texts(data)
    in_answer = [family for family in families if not family.in_caption]
    in_caption = [family for family in families if family.in_caption]
    answers: list[Case] = []
    pictures = visual_rows(half, 0, counts.pictures)
    every_picture = visual_rows(half, 0, len(rows)) + visual_rows(half, 1, len(rows))
    for wrong, right, pool in (
        (text_rows(rows, half, 0, counts.texts), text_rows(rows, half, 1, counts.right), rows),
        (pictures, visual_rows(half, 1, counts.right), every_picture),
    ):
        answers += attacked(wrong, in_answer, half, pool)
        answers += right_answers(right, read_right(), pool)
    return answers, list(attacked(pictures, in_caption, half, every_picture))
