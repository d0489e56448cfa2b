"""The table of levels: what a draw measures, and how lines are written."""

import json

import numpy as np
import pytest
from benchmarks.agreement.correctness_rows import COLUMNS, ScoredRows
from benchmarks.agreement.level import DRAWN_ROWS, DRAWS, catalog_form, line_of, measured_draws, table

from gradewire_server.metrics.correctness.features import INPUT_KIND
from gradewire_stats.calibration.level import LevelRows


def test_a_level_that_is_far_off_is_mended_on_the_remaining_rows() -> None:
    random = np.random.default_rng(0)
    log_odds = random.normal(0, 2, 2000)
    shown, true = (1 / (1 + np.exp(-(log_odds + shift))) for shift in (1.5, 0.0))
    right = random.random(2000) < true
    nothing, keys = np.zeros(2000), [str(row) for row in range(2000)]
    rows = LevelRows(shown, shown, nothing, nothing[:, None], right, keys, nothing > 0)
    found = np.array(list(measured_draws(rows)))
    assert found.shape == (DRAWS, 4)
    before, after, accuracy_before, accuracy_after = found.mean(axis=0)
    assert before > 0.15
    assert after < 0.1
    assert accuracy_after > accuracy_before
    # A draw leaves 1950 rows, of which the accuracy is a share.
    assert found[0, 2] * (2000 - DRAWN_ROWS) == pytest.approx(round(found[0, 2] * (2000 - DRAWN_ROWS)), abs=1e-6)


def test_a_line_of_the_catalogs_fit() -> None:
    random = np.random.default_rng(1)
    count = 120
    rows = [{"id": str(row), "question": f"q {row}", "label": row % 2, "dataset": "x"} for row in range(count)]
    values, shapes = random.random((count, len(COLUMNS))), random.random((count, len(INPUT_KIND)))
    line = line_of(
        "some", catalog_form("all-MiniLM-L6-v2"), ScoredRows(rows, "x", COLUMNS, values, shapes, values[:, 0], "")
    )
    assert line[:2] == ["some", "120"]
    assert line[5].endswith(f" of {DRAWS}")
    head, rule, written = table([line]).splitlines()
    assert head.count("|") == rule.count("|") == written.count("|") == len(line) + 1
    assert json.loads(line[2]) <= 1
