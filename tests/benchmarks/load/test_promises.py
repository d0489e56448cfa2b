"""The page of promises gets its figures from a file."""

from pathlib import Path

import pytest
from benchmarks.common.measurements import Measurement, with_block
from benchmarks.load.promises import BLOCK, PAGE, table


def figure(promise: str, name: str, value: float, bound: str = "") -> Measurement:
    return Measurement(
        promise, name, value, "ms", bound, "a test", load=1.5, date="2026-11-23", machine="2 cores, AVX512"
    )


def test_a_row_for_each_figure_promise_by_promise() -> None:
    rows = table([figure("a", "x", 1, "<= 2"), figure("b", "y", 2, "> 0"), figure("a", "z", 3, "<= 2")]).splitlines()
    assert rows[0] == "Measured 2026-11-23 on 2 cores, AVX512. **1** of 3 measurements miss their promise."
    assert rows[4:] == [
        "| a | x | 1 ms | <= 2 | 1.5 | `a test` |",
        "| a | z | **3 ms** | <= 2 | 1.5 | `a test` |",
        "| b | y | 2 ms | > 0 | 1.5 | `a test` |",
    ]


def test_the_page_has_the_place_for_them() -> None:
    assert "| a | x |" in with_block(Path(PAGE).read_text("utf-8"), BLOCK, table([figure("a", "x", 1, "< 2")]))


def test_figures_without_a_bound_only_inform() -> None:
    with pytest.raises(ValueError, match="make test-hostile"):
        table([figure("a", "x", 1)])
