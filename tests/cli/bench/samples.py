"""Samples for `gradewire bench ave` whose scores the tests can work out themselves: letters of the answer over 128."""

import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from tests.cli.conftest import Command, figures_of, write_rows

from gradewire.testing import StubTransport, echo_scores
from gradewire_proto.v1 import types_pb2

NAMES = ("okvqa", "gqa")


def samples(count: int = 60, **columns: Any) -> list[dict[str, Any]]:
    """Answers of 1 to 30 letters; a longer one was graded higher, mostly. References count by their length, too."""
    random = np.random.default_rng(3)
    rows = []
    for number in range(count):
        letters = int(random.integers(1, 31))
        rows.append(
            {
                "id": f"s{number}",
                "question": f"question {number}",
                "references": ["a"],
                "prediction": "x" * letters,
                "descriptions": ["x" * (letters + int(random.integers(0, 9))) for _ in range(3)],
                "shifted_references": ["b" * int(random.integers(1, 5))],
                "grade": float(np.clip(letters / 3 + random.normal() * 2, 0, 10)),
                "dataset": NAMES[number % 2],
                **columns,
            }
        )
    return rows


def score(item: types_pb2.Item) -> float | None:
    """Letters of answer and reference over 128, which rounds nothing; none where the answer begins with z."""
    return None if item.prediction.startswith("z") else (len(item.prediction) + len(item.references[0])) / 128


def stub() -> StubTransport:
    return StubTransport(lambda request: echo_scores(request, score=score))


def expected(rows: list[dict[str, Any]]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """float64[samples, parts] by the rule of `score`."""
    return np.array(
        [
            (
                (len(row["prediction"]) + 1) / 128,
                np.mean([len(text) + 1 for text in row["descriptions"]]) / 128,
                (len(row["prediction"]) + len(row["shifted_references"][0])) / 128,
            )
            for row in rows
        ]
    )


def benched(command: Command, tmp_path: Path, rows: list[dict[str, Any]], *options: str) -> dict[str, Any]:
    """JSON of `bench ave` on these samples."""
    listed = () if "--metrics" in options else ("--metrics", "sbert")
    return figures_of(partial(command, "bench", "ave", stub=stub()), tmp_path, rows, *listed, "--quiet", *options)


def check(found: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    scores, grades = expected(rows), [row["grade"] for row in rows]
    parts = [stats.spearmanr(column, grades).statistic for column in scores.T]
    assert [part["value"] for part in found["parts"]] == pytest.approx(parts)
    assert found["alignment"]["value"] == pytest.approx(np.mean(parts))
    assert found["consistency"]["value"] == pytest.approx(math.log2(1 / np.mean(scores.var(axis=1))))


def said(command: Command, tmp_path: Path, rows: list[dict[str, Any]], *options: str) -> str:
    file = write_rows(tmp_path / "rows.jsonl", rows)
    done = command("bench", "ave", file, "--metrics", "sbert", "--resamples", "100", "--quiet", *options, stub=stub())
    assert done.exit_code == 0, done.output
    return " ".join(done.output.split())
