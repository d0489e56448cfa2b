"""Tables of outputs whose rows hold what a column of Parquet cannot."""

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.support.syncs import Syncs

from gradewire_cli.results.results_table import write_table
from gradewire_cli.results.resumable_output import encode_rows

LARGE = 1 << 70


def table(folder: Path, name: str, values: list[Any], column: str = "kept") -> Path:
    """The table of an output whose rows kept these values."""
    rows = [
        {"id": f"r{index}", "index": index, "digest": "0" * 32, "input": {column: value}, "scores": {}}
        for index, value in enumerate(values)
    ]
    (folder / "rows.jsonl").write_bytes(encode_rows(rows, first=True))
    write_table(folder / name, folder / "rows.jsonl")
    assert sorted(path.name for path in folder.iterdir()) == sorted([name, "rows.jsonl"])
    return folder / name


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ([1, LARGE], ["1", str(LARGE)]),
        ([0.5, LARGE], ["0.5", str(LARGE)]),
        ([[1], [LARGE]], ["[1]", f"[{LARGE}]"]),
        ([-(1 << 63), (1 << 63) - 1], [-(1 << 63), (1 << 63) - 1]),
        ([(1 << 60) + 1, 0.5], [float(1 << 60), 0.5]),
        (["a\ud800b", None], ["a?b", None]),
        ([["\ud800"], ["b"]], [["?"], ["b"]]),
        ([{"a": "\ud800"}], ['{"a": "?"}']),
    ],
)
def test_any_kept_value_has_its_cell_in_parquet(tmp_path: Path, values: list[Any], found: list[Any]) -> None:
    assert pq.read_table(table(tmp_path, "out.parquet", values)).column("kept").to_pylist() == found


def test_a_column_may_have_any_name(tmp_path: Path) -> None:
    assert "\\ud800" in pq.read_table(table(tmp_path, "out.parquet", ["a"], column="\ud800")).column_names


def test_in_csv_numbers_of_any_size_are_as_they_were(tmp_path: Path) -> None:
    with table(tmp_path, "out.csv", [1, LARGE, [LARGE], "a\ud800b"]).open(newline="") as stream:
        found = [row["kept"] for row in csv.DictReader(stream)]
    assert found == ["1", str(LARGE), json.dumps([LARGE]), "a?b"]


@pytest.mark.parametrize("name", ["out.parquet", "out.csv"])
def test_a_table_outlasts_a_power_cut_when_its_rows_may_go(tmp_path: Path, syncs: Syncs, name: str) -> None:
    syncs.assert_lasts(table(tmp_path, name, ["a", "b"]))
