"""All cases of a half: wrong answers with and without attacks, and right ones."""

from dataclasses import dataclass
from pathlib import Path

from benchmarks.judges.attacks.cases import Case, attacked, right_answers
from benchmarks.judges.attacks.families import Half, read_families, read_right
from benchmarks.judges.attacks.rows import read_texts, text_rows, visual_rows


@dataclass(frozen=True, slots=True)
class Counts:
    """Different questions whose answers are taken: about texts and about pictures, wrong ones and right ones."""

    texts: int
    pictures: int
    right: int


def cases_of(half: Half, data: Path, counts: Counts) -> tuple[list[Case], list[Case]]:
    """All cases of a half: attacks in answers with the right answers, and attacks in captions."""
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
