"""The rows of the cascade, read from labelled rows and their scores."""

import json
from pathlib import Path
from typing import Any

from benchmarks.judges.cascade_statistics import EXACT, PROBABILITY, read_cheap


def write(path: Path, entries: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return path


def test_only_literal_exact_matches_count_as_exact(tmp_path: Path) -> None:
    rows, scores = [], []
    for number, (prediction, matched, score) in enumerate(
        [("The dog.", 1, 1.0), ("5", 0, 1.0), ("-5", 0, 1.0), ("the cat", 0, 0.0)]
    ):
        item = {"question": "Which?", "references": ["-5", "dog"], "prediction": prediction, "label": 1}
        rows.append({"id": str(number), **item})
        exact = {"score": score} | ({"matched_reference": matched} if score else {})
        probability = {"score": 0.25, "fit": "f", "line": "correctness/3"}
        scores.append({"id": str(number), "scores": {EXACT: exact, PROBABILITY: probability}})
    found = read_cheap(write(tmp_path / "rows.jsonl", rows), write(tmp_path / "scores.jsonl", scores))
    assert found.exact.tolist() == [True, False, True, False]
    assert found.with_judge({}).confidence.tolist() == [2.0, 0.75, 2.0, 0.75]
