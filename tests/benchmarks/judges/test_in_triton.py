"""The comparison's file of results: what is kept, continued and reported."""

import json
from pathlib import Path

from benchmarks.judges.in_triton import report, results


def write(out: Path, *lines: dict[str, object]) -> None:
    out.write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_the_report_compares_rows_that_both_rated(tmp_path: Path) -> None:
    out = tmp_path / "results.jsonl"
    scores = {"embedded": (0.5, 0.25, 0.75, None), "triton": (0.5, 0.375, None, None)}
    rows = [
        {"id": str(number), "backend": name, "judge": "a", "score": score, "mass": 0.75, "status": "OK"}
        for name, all_scores in scores.items()
        for number, score in enumerate(all_scores)
    ]
    used = {"backend": "triton", "items": 4, "cpu_s": 2.0, "questions": 4, "batches": 2, "load": 1.0}
    rows[4]["mass"] = 0.5
    changed = {**rows[0], "judge": "b", "score": 0.0}
    write(out, *rows, changed, {"used": used})
    assert report(out) == [
        "triton: 4 rows, 2.000 per CPU second, 4 questions in 2 batches",
        (
            "2 rows rated by both; largest difference 0.12, of the labels' total probability 0.25 (4 rows); "
            "rated by only one: 1"
        ),
        "1 rows rated on one backend alone, or by another judge, are not compared",
    ]
    assert [row["id"] for row in results(out, "triton")] == ["0", "1", "2", "3"]
    assert [row["id"] for row in results(out, "embedded", "b")] == ["0"]


def test_a_run_that_begins_has_no_results(tmp_path: Path) -> None:
    assert results(tmp_path / "none.jsonl", "triton") == []
