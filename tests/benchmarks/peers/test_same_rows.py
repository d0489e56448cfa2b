"""The table of the usual metrics says what the scores and the seconds say."""

import numpy as np
from benchmarks.peers.same_rows import FIRST, NAMES, SOURCES, differences_table, judged_rows, results_table

ROWS = [
    {"question": f"question {number}", "label": number % 2, "source": source}
    for source in SOURCES
    for number in range(60)
]


def scores_of(name: str) -> list[float]:
    """Perfect scores for the first way, and chance for the others; one row of `lave` failed."""
    draw = np.random.default_rng(len(name))
    scores = [row["label"] if name == FIRST else draw.random() for row in ROWS]
    return [float("nan"), *scores[1:]] if name == "lave" else scores


JUDGED = judged_rows(ROWS, {name: scores_of(name) for name in NAMES})


def test_a_way_has_its_agreement_speed_and_cost() -> None:
    lines = results_table(JUDGED, dict.fromkeys(NAMES, 12.0) | {"exact_match": 0.001}, 0.36).splitlines()
    assert len(lines) == 2 + len(NAMES)
    first, cells = lines[2], {name: line.split(" | ") for name, line in zip(NAMES, lines[2:], strict=True)}
    assert first.count("1.000 [1.000, 1.000]") == 4
    # 120 rows in 12 s are 10 answers/s: a million take 100 000 s, which is 27.8 h at $0.36.
    assert first.endswith("| 0 | 10.0 | $10.00 |")
    assert cells["lave"][-3] == "1"
    assert lines[2 + list(NAMES).index("exact_match")].endswith("| < $0.01 |")


def test_differences_are_paired_and_have_intervals() -> None:
    lines = differences_table(JUDGED).splitlines()
    assert len(lines) == 2 + len(NAMES) - 1
    for line in lines[2:]:
        pearson, area = (cell.strip() for cell in line.strip("| ").split(" | ")[1:])
        assert 0.7 < float(pearson.split()[0]) < 1.3
        low, high = (float(end) for end in area.split("[")[1].rstrip("]").split(", "))
        assert 0.2 < low < float(area.split()[0]) < high < 0.8
