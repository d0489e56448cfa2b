"""Figures of travel, worked out on paper, and what the release before wrote."""

import json
from pathlib import Path

import numpy as np
import pytest
from benchmarks.agreement.travel import CHANGES, ReadSet, Way, change, changes_table, read_before, ways_table

RIGHT = np.array([True, True, False, False])
BEFORE = Way("before", np.array([0.9, 0.4, 0.6, 0.2]), np.array([False, True, False, False]))
AFTER = Way("after", np.array([0.9, 0.8, 0.3, 0.2]), np.array([False, False, True, False]))
ROWS = ReadSet("four", RIGHT, ["a", "b", "c", "d"], [BEFORE, AFTER])


def test_a_line_for_each_way() -> None:
    _, _, before, after = ways_table([ROWS]).splitlines()
    assert before.startswith("| four, 4 rows | before | ")
    assert " | 0.750 | 0.500 | " in before
    assert before.endswith("| 25.0% | 0.000 | 0.667 | 50% |")
    assert after.endswith("| 25.0% | 1.000 | 1.000 | nan% |")


def test_what_changes_is_paired_by_question() -> None:
    value, low, high = change(CHANGES["accuracy"], BEFORE.found, AFTER.found, ROWS)
    assert value == 0.5
    assert (low, high) == (0.0, 1.0)
    same = change(CHANGES["accuracy"], BEFORE.found, BEFORE.found, ROWS)
    assert same == (0.0, 0.0, 0.0)
    # One question: whatever is drawn, all rows are there.
    one = ReadSet("four", RIGHT, ["a"] * 4, [BEFORE, AFTER])
    assert change(CHANGES["AUC"], BEFORE.found, AFTER.found, one) == (0.25, 0.25, 0.25)
    assert "| four | after | " in changes_table([ROWS])


def test_what_the_release_before_wrote(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    lines = [
        {"id": "1", "scores": {"correctness": {"score": 0.9, "status": "OK"}}},
        {"id": "2", "scores": {"correctness": {"score": 0.6, "status": "OK", "warnings": ["UNCERTAIN"]}}},
    ]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    assert read_before(file) == {"1": (0.9, False), "2": (0.6, True)}
    lines[0]["scores"] = {"correctness": {"score": None, "status": "UNAVAILABLE"}}
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    with pytest.raises(ValueError, match="row 1 has no probability"):
        read_before(file)
