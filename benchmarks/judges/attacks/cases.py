"""Attacked answers: each wrong answer as it is and once in every family; right answers as they are and in other words.

A row meets one wording of each family, in turns, so that the answers of a family are independent draws.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from benchmarks.common.rows import Row
from benchmarks.judges.attacks.families import RIGHT, Family, Half, Wording
from benchmarks.judges.attacks.rows import key_of, other_keys

PLAIN: Final = "plain"


@dataclass(frozen=True, slots=True)
class Case:
    """One answer to be scored.

    Attributes:
        item: As a client sends it; its id is unique.
        row: Id of the row that it is made of.
        family: Name of the family; `PLAIN` for a wrong answer as it is, `RIGHT` for a right one.
        wording: Place of the wording; -1 for none.
        right: Whether people call it right.
    """

    item: dict[str, Any]
    row: str
    family: str
    wording: int
    right: bool

    @property
    def is_attack(self) -> bool:
        """Whether a wrong answer is to pass for a right one."""
        return not self.right and self.family != PLAIN


def attacked(rows: Sequence[Row], families: Sequence[Family], half: Half, pool: Sequence[Row]) -> Iterator[Case]:
    """Wrong answers, as they are and attacked; captions of rows without a caption are left alone.

    Args:
        rows: Wrong answers.
        families: Those that are met.
        half: Whose wordings.
        pool: Rows whose keys are the other options.
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
    """Right answers, as they are and in one of the other wordings."""
    plain, *others = wordings
    for place, row in enumerate(rows):
        keys = other_keys(row, pool)
        for wording in (plain, others[place % len(others)]):
            name = f"{RIGHT}/{wording.place}"
            yield Case(_item(row, name, written(wording, row, keys)), row["id"], RIGHT, wording.place, right=True)


def written(wording: Wording, row: Row, others: Sequence[str]) -> str:
    """A wording with the texts of a row in it."""
    options = {f"other{number}": text for number, text in enumerate(others, start=1)}
    texts = {"answer": row["prediction"], "question": row["question"], "reference": key_of(row)}
    return wording.written({name: text.strip() for name, text in (texts | options).items()})


def _item(row: Row, name: str, prediction: str) -> dict[str, Any]:
    item = {"id": f"{row['id']}/{name}", "question": row["question"], "references": row["references"]}
    return item | ({"captions": row["captions"]} if "captions" in row else {}) | {"prediction": prediction}
