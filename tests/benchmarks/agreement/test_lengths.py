"""Answers are divided by their words, and each length is compared as one cell."""

import numpy as np
from benchmarks.agreement.lengths import STATISTICS, bins_of, judged, lines_of

from gradewire_stats.agreement import agreement


def row(words: int, label: int) -> dict[str, object]:
    return {"question": f"question {words} {label}", "prediction": "word " * words, "label": label}


def test_every_answer_is_in_one_length_and_in_all() -> None:
    rows = [row(words, 1) for words in (1, 8, 9, 24, 25, 60, 61, 500)]
    bins = bins_of(rows)
    assert [(each.name, list(each.rows)) for each in bins] == [
        ("at most 8", [0, 1]),
        ("9 to 24", [2, 3]),
        ("25 to 60", [4, 5]),
        ("more than 60", [6, 7]),
        ("all", [0, 1, 2, 3, 4, 5, 6, 7]),
    ]


def test_a_line_has_the_figure_and_its_difference_to_the_first_preset() -> None:
    rows = [row(words, words % 2) for words in range(1, 41)]
    good = np.array([0.9 if words % 2 else 0.1 for words in range(1, 41)]) + np.linspace(0, 0.05, 40)
    scores = {"smile:v1": good, "smile:fast": good, "smile:one_pass": 1 - good}
    part = judged(rows, scores)
    compare = [(name, "smile:v1") for name in ("smile:fast", "smile:one_pass")]
    report = agreement(part, compare=compare, compare_statistics=STATISTICS, statistics=STATISTICS, resamples=50)
    first, second, third = lines_of("drawn", bins_of(rows)[-1], report)
    assert first.startswith("| drawn | all | 40 | `v1` | 0.99")
    assert "+0.0000 [+0.0000, +0.0000]" in second
    assert "| `one_pass` | \N{MINUS SIGN}0.99" in third
    assert third.endswith("| 0.0000 | -1.0000 [-1.0000, -1.0000] |".replace("-", "\N{MINUS SIGN}"))
