"""Measure how often the judge and the rule grade answers to yes/no questions correctly."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.common.rows import read_lines

from gradewire_server.domain.items import Item

# Question, annotators' answers with counts, and four predictions: right, verbose, nearly right, wrong.
_QUESTIONS: Final = (
    ("What colour is the bus?", "red 8, maroon 2", "red", "It is a red bus.", "reddish brown", "blue"),
    ("How many dogs are there?", "2 7, two 2, 3 1", "two", "There are 2 dogs in it.", "a few", "five"),
    ("What is the man holding?", "umbrella 9, parasol 1", "umbrella", "He holds an open umbrella.", "a stick", "phone"),
    ("What sport is this?", "tennis 10", "tennis", "They are playing tennis.", "a racket sport", "golf"),
    ("What is on the plate?", "pizza 6, slice of pizza 4", "pizza", "A slice of pizza.", "italian food", "salad"),
    ("Where is the cat sitting?", "windowsill 5, window 4, sill 1", "on the sill", "By the window.", "indoors", "sofa"),
    ("What animal is in the field?", "cow 8, cattle 2", "cow", "A brown cow is grazing.", "farm animal", "horse"),
    ("What time does the clock show?", "10:10 7, ten past ten 3", "10:10", "Ten past ten.", "about ten", "3:45"),
    ("What room is this?", "kitchen 10", "kitchen", "This looks like a kitchen.", "a room with a stove", "bathroom"),
    ("What is the weather like?", "rainy 6, wet 2, cloudy 2", "rainy", "It seems to be raining.", "bad", "sunny"),
    ("What brand is the laptop?", "dell 9, hp 1", "dell", "It says Dell on the lid.", "not an apple", "apple"),
    ("What is the woman wearing on her head?", "hat 7, straw hat 3", "hat", "She wears a hat.", "headwear", "helmet"),
    ("What fruit is in the bowl?", "bananas 6, banana 4", "bananas", "Some ripe bananas.", "yellow fruit", "apples"),
    ("What is the boy riding?", "skateboard 10", "skateboard", "He rides a skateboard.", "a board", "bicycle"),
    ("What material is the bench?", "wood 8, wooden 2", "wood", "It is made of wood.", "planks", "metal"),
    ("What does the sign say?", "stop 10", "stop", "The sign says stop.", "a warning", "yield"),
)
_Z = 1.959963985


def vqa_items() -> Iterator[Item]:
    """Yield the rows, with the four answers to a question far apart."""
    for answer in range(4):
        for question, said, *predictions in _QUESTIONS:
            counted = (each.rpartition(" ") for each in said.split(", "))
            references = tuple(text for text, _, count in counted for _ in range(int(count)))
            yield Item(f"{question} {answer + 1}", question, references, predictions[answer])


def wilson(right: int, rows: int) -> tuple[float, float]:
    """Return a share's 95 % interval (Wilson 1927); the normal interval fails near 0 and 1."""
    share, z2 = right / rows, _Z * _Z
    middle = (share + z2 / (2 * rows)) / (1 + z2 / rows)
    half = _Z / (1 + z2 / rows) * math.sqrt(share * (1 - share) / rows + z2 / (4 * rows * rows))
    return middle - half, middle + half


def binary_table(rows: Path, scores: Path, metrics: Sequence[str]) -> str:
    """Return a Markdown table with each metric's accuracy, overall and by kind of answer.

    `rows` contain the kind of answer as `dataset`. `scores` is the output of `gradewire score`; a failed metric counts
    as wrong.
    """
    truth = {row["id"]: row for row in read_lines(rows)}
    found = {row["id"]: row["scores"] for row in read_lines(scores)}
    kinds = list(dict.fromkeys(row["dataset"] for row in truth.values()))
    lines = [f"| | all {len(truth)} | {' | '.join(kinds)} |", f"|---|---:|{'---:|' * len(kinds)}"]
    for metric in metrics:
        hits = {name: _right(found[name][metric], row["label"]) for name, row in truth.items()}
        low, high = wilson(sum(hits.values()), len(hits))
        shares = []
        for kind in kinds:
            of_kind = [hits[name] for name, row in truth.items() if row["dataset"] == kind]
            shares.append(f"{sum(of_kind)} of {len(of_kind)}")
        lines.append(
            f"| {metric} | {sum(hits.values()) / len(hits):.3f} [{low:.3f}, {high:.3f}] | {' | '.join(shares)} |"
        )
    return "\n".join(lines)


def _right(score: dict[str, Any], label: int) -> bool:
    return "correct" in score and bool(score["correct"]) == bool(label)
