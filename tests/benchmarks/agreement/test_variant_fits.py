"""The comparison of a variant's `correctness` with its base's."""

import argparse
import json
import tomllib
from pathlib import Path

import numpy as np
import pytest
from benchmarks.agreement.correctness_rows import COLUMNS, ScoredRows
from benchmarks.agreement.variant_fits import (
    Comparison,
    catalog_entry,
    drawn_rows,
    on_cpu,
    sha256_of,
    shipped_fit,
    table,
)
from benchmarks.common.rows import Row
from numpy.typing import NDArray
from tests.support.models.rounded_variants import ENCODER, write_rounded_variants

from gradewire_models.catalog.entries import ComparedFits
from gradewire_models.catalog.table import read_table
from gradewire_models.repository.built import load_built
from gradewire_server.metrics.correctness.features import INPUT_KIND
from gradewire_stats.calibration.labelled_rows import half_of

BASE = np.array([0.9, 0.6, 0.4, 0.1])
RIGHT = np.array([True, True, False, False])


def row(number: int, label: int = 1) -> Row:
    texts = {"question": f"Question {number}?", "references": ["r"], "prediction": "p"}
    return {"id": str(number), **texts, "label": label, "model": "gpt4"}


def compared(variant: NDArray[np.float64], grader: str = "") -> Comparison:
    return Comparison(grader, RIGHT, np.array([0, 0, 1, 1]), BASE, variant)


def test_changes_are_the_variants_against_its_bases() -> None:
    found = compared(np.array([0.9, 0.39, 0.4, 0.1]))
    assert found.auc == 0.75
    assert found.auc_change == -0.25
    assert found.changes.max() == pytest.approx(0.21)
    assert found.other_verdicts == 1
    assert compared(BASE).auc_change_interval() in {None, (0.0, 0.0)}
    said = table("some-variant", [found, compared(BASE, "grader-mini")]).splitlines()
    assert said[2].startswith("| `some-variant` | without a grader | 4 | 1.000000 | 0.750000 | -0.250000")
    assert said[2].endswith("| 0.21000 | 0.052500 | 1 |")
    assert said[3].startswith("| `some-variant` | with grader-mini | 4 | 1.000000 | 1.000000 | +0.000000")


def test_the_interval_is_over_questions() -> None:
    rng = np.random.default_rng(0)
    right = rng.random(200) < 0.5
    base = np.clip(right * 0.2 + rng.random(200), 0, 1)
    found = Comparison("", right, np.arange(200) // 2, base, np.clip(base + rng.normal(0, 0.1, 200), 0, 1))
    bounds = found.auc_change_interval()
    assert bounds is not None
    assert bounds[0] < found.auc_change < bounds[1]
    assert bounds == found.auc_change_interval()


def test_the_catalogs_table_is_one_that_the_catalog_reads() -> None:
    rows = [row(number, label) for number, label in enumerate((1, 1, 0, 0))]
    values = np.zeros((4, len(COLUMNS)))
    scored = ScoredRows(rows, "evouna", COLUMNS, values, np.zeros((4, len(INPUT_KIND))), values[:, 0], "correctness/3")
    variant = compared(np.array([0.9, 0.6, 0.4, 0.1004321]), "grader-mini")

    def read(model: str) -> ComparedFits:
        options = argparse.Namespace(model=model, grader="grader-mini-fp16-cuda", data=Path("some.jsonl"))
        entry = tomllib.loads(catalog_entry(variant, scored, options))["variant"]["compared_fits"]
        return read_table(ComparedFits, {**entry, "date": str(entry["date"])})

    found = read(ENCODER)
    assert found.graders == {"grader-mini": "grader-mini-fp16-cuda"}
    assert (found.rows, found.rows_sha256, found.auc, found.max_change) == (4, sha256_of(rows), 1.0, 0.00044)
    assert found.computed == "in fp16 on a CPU"
    assert read("all-MiniLM-L6-v2-fp32-cuda").computed == "in fp32, the grader in fp16, on a CPU"


def test_rows_are_drawn_of_the_half_that_the_grader_has_not_read(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row(number)) + "\n" for number in range(300)), encoding="utf-8")
    drawn = drawn_rows(path, 50)
    assert len(drawn) == 50
    assert {half_of(each["question"]) for each in drawn} == {"b"}
    assert drawn == drawn_rows(path, 50)
    assert 100 < len(drawn_rows(path, 1000)) < 200
    assert sha256_of(drawn) != sha256_of(drawn[::-1])


def test_other_rows_are_refused() -> None:
    values = np.zeros((1, len(COLUMNS)))
    one, other = (
        ScoredRows([row(number)], "evouna", COLUMNS, values, np.zeros((1, len(INPUT_KIND))), values[:, 0], "")
        for number in (1, 2)
    )
    fit = shipped_fit("all-MiniLM-L6-v2", "")
    with pytest.raises(ValueError, match="differ"):
        Comparison.of(one, other, fit, "")
    assert not Comparison.of(one, one, fit, "").changes.any()


def test_a_copy_for_cpus_has_the_variants_graph_and_none_of_its_fits(minilm: Path, tmp_path: Path) -> None:
    for path in minilm.iterdir():
        (tmp_path / path.name).symlink_to(path)
    write_rounded_variants(tmp_path)
    variant = load_built(tmp_path, ENCODER)
    assert variant.calibrations
    repository = tmp_path / "copies"
    for _ in range(2):  # a second run replaces the first one's
        name = on_cpu(variant, repository)
    copy = load_built(repository, name)
    assert (name, copy.numeric_class, copy.on_cpu) == (f"{ENCODER}-on-cpu", "fp16-cpu", True)
    # The stand-in's graph is in float32, in which nothing is rounded.
    assert copy.onnx_path.read_bytes() == variant.onnx_path.read_bytes()
    assert copy.calibrations == ()
    assert copy.digest != variant.digest
