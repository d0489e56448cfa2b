"""The stand-in's scores and the tables of runs, against values by hand."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.agreement.sfve_ablations import ALL, UNTRAINED
from benchmarks.agreement.sfve_ablations.measuring import StandIn
from benchmarks.agreement.sfve_ablations.tables import tables

# A cosine with "x" is the number in the text.
COSINES = {"x": 1.0, "y": 0.8, "z": 0.0, "said": 0.6, "said so": 0.28, "shifted": -0.6}


def row(**changed: Any) -> dict[str, Any]:
    return {
        "question": "who",
        "references": ["x", "z"],
        "prediction": "y",
        "descriptions": ["said", "said so"],
        "shifted_references": ["shifted"],
        "label": 1.0,
        "dataset": "nq",
        "half": "a",
    } | changed


def vector(cosine: float) -> Any:
    return np.array([cosine, (1 - cosine**2) ** 0.5], dtype=np.float32)


def test_a_part_takes_the_best_reference_and_the_mean_of_descriptions() -> None:
    given = StandIn([row()])
    vectors = {f"Question: who Answer: {text}": vector(cosine) for text, cosine in COSINES.items()}
    assert set(given.texts()) == set(vectors)
    found = given.ave_rows(vectors)
    # 0.8 for x; for z and a description 0.8 and 0.96 beat 0.6 and 0.28; y and the shifted: -0.48 + 0.48.
    np.testing.assert_allclose(found.scores, [[0.8, (0.8 + 0.96) / 2, 0.0]], atol=1e-6)
    assert (found.labels.tolist(), found.datasets, found.questions) == ([1.0], ["nq"], ["who"])


def test_one_half_or_all_rows_are_read(tmp_path: Path) -> None:
    path = tmp_path / "standin.jsonl"
    path.write_text("".join(json.dumps(row(half=half)) + "\n" for half in "aab"), encoding="utf-8")
    assert [len(StandIn.read(path, half).rows) for half in ("a", "b", None)] == [2, 1, 3]


def result(work: Path, kind: str, seed: int, scores: list[float], **changed: Any) -> None:
    """Writes the result of a run whose parts all have these scores; the third part differs by 0.3."""
    sets = dict.fromkeys(("a", "b") if kind == ALL else ("a", "b", "apart"), parts(scores))
    written = {"kind": kind, "base": "tiny", "seed": seed, "sets": sets, "curve": [], "steps": 8, "batch_size": 4}
    folder = work / f"{kind} {seed}"
    folder.mkdir()
    (folder / "result.json").write_text(json.dumps(written | changed), encoding="utf-8")


def parts(scores: list[float]) -> list[list[float]]:
    return [[score, score, score + 0.3] for score in scores]


ROWS = StandIn([row(label=float(number), question=f"who {number}") for number in range(4)])
EVERY = {"a": ROWS, "b": ROWS, "apart": ROWS}
RISING = [0.1, 0.2, 0.3, 0.4]
# Two neighbours are exchanged: 1 - 6 · 2 / (4 · 15) = 0.8.
EXCHANGED = [0.2, 0.1, 0.3, 0.4]


def test_tables_have_mean_spread_gain_and_curve(tmp_path: Path) -> None:
    result(tmp_path, UNTRAINED, 0, EXCHANGED)
    result(tmp_path, ALL, 1, RISING, curve=[{"step": 4, "scores": parts(EXCHANGED)}])
    result(tmp_path, ALL, 2, EXCHANGED)
    found = tables(tmp_path, EVERY)
    # A sample's variance is 2 · 0.1² / 3 + 0.2² / 3 = 0.02, and log2(50) is 5.64.
    assert "| untrained | 1 | 0.800 | 5.64 | 0.800 | 5.64 | 0.800 | 5.64 |" in found
    # The standard deviation of two values is their difference divided by the root of 2.
    assert "| all tasks | 2 | 0.900 ± 0.141 | 5.64 ± 0.00 | 0.900 ± 0.141 | 5.64 ± 0.00 | - | - |" in found
    assert re.search(r"\| all tasks, held-out split \| \+0\.100 \| \+0\.200 \[\S+, \S+\], \+0\.000 \[", found), found
    assert "NQ301 | +" not in found
    assert "| 0 | 0 | 0.800 |\n| 4 | 16 | 0.800 |\n| 8 | 32 | 1.000 |" in found


def test_runs_of_different_sizes_are_no_seeds_of_one_recipe(tmp_path: Path) -> None:
    result(tmp_path, UNTRAINED, 0, EXCHANGED)
    result(tmp_path, ALL, 1, RISING)
    result(tmp_path, ALL, 2, RISING, steps=16)
    with pytest.raises(ValueError, match=r"8 steps of 4, 16 steps of 4\. Use a folder for each"):
        tables(tmp_path, EVERY)


def test_a_set_that_not_every_seed_measured_has_no_value(tmp_path: Path) -> None:
    result(tmp_path, UNTRAINED, 0, EXCHANGED)
    result(tmp_path, ALL, 1, RISING, sets=dict.fromkeys(("a", "b", "apart"), parts(RISING)))
    result(tmp_path, ALL, 2, RISING)
    found = tables(tmp_path, EVERY)
    assert "| all tasks | 2 | 1.000 ± 0.000 | 5.64 ± 0.00 | 1.000 ± 0.000 | 5.64 ± 0.00 | - | - |" in found
    assert "all tasks, NQ301" not in found


def test_without_results_there_is_no_table(tmp_path: Path) -> None:
    assert tables(tmp_path, {}) == ""


@pytest.mark.parametrize("kind", [ALL, UNTRAINED])
def test_a_lone_kind_has_no_gain_and_no_spread(kind: str, tmp_path: Path) -> None:
    result(tmp_path, kind, 1, RISING)
    found = tables(tmp_path, EVERY)
    assert f"| {kind} | 1 | 1.000 | 5.64 | 1.000 | 5.64 |" in found
    assert "±" not in found
    assert f"| {kind}, " not in found
