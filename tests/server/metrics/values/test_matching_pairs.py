"""672 pairs of answers that are equal to a reference by value or not, by type, written before the code."""

import json
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from gradewire_server.metrics.values.matching import match_values

_PAIRS: Final = Path(__file__).parent / "pairs"
_LEAST: Final = 0.95
"""Of one type: a single miss in a type with 20 equal pairs is .05."""
_LEAST_ALL: Final = 0.97
_LEAST_LATER: Final = 0.92
"""Of equal pairs in three sets of a second author, some of which no rule here reads: CO2 as carbon dioxide."""


def _counts(path: Path) -> Counter[tuple[str, bool]]:
    """How many pairs are expected to be what, and found equal or not."""
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    counts: Counter[tuple[str, bool]] = Counter()
    for row in rows:
        match = match_values(row["question"], row["reference"], row["answer"])
        counts[row["expected"], match.wanted > 0 and match.found == match.wanted] += 1
    return counts


def _precision_and_recall(counts: Counter[tuple[str, bool]]) -> tuple[float, float]:
    right = counts["equal", True]
    return right / (right + counts["different", True]), right / (right + counts["equal", False])


@pytest.mark.parametrize("path", sorted(_PAIRS.glob("*.jsonl")), ids=lambda path: path.stem)
def test_pairs_of_a_type(path: Path) -> None:
    counts = _counts(path)
    assert counts.total() >= 40
    assert min(_precision_and_recall(counts)) >= _LEAST, counts


def test_all_pairs() -> None:
    counts = sum(map(_counts, _PAIRS.glob("*.jsonl")), Counter[tuple[str, bool]]())
    assert counts.total() >= 600
    assert min(_precision_and_recall(counts)) >= _LEAST_ALL, counts


def test_pairs_that_someone_else_wrote_for_the_finished_code() -> None:
    counts = _counts(_PAIRS.parent / "pairs_read_later.jsonl")
    assert counts.total() >= 400
    precision, recall = _precision_and_recall(counts)
    assert precision >= _LEAST_ALL, counts
    assert recall >= _LEAST_LATER, counts
