"""Forms and places of input and output."""

import csv
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from tests_bulk.conftest import GRADEWIRE, Run, assert_same, read, straight, write_rows

from gradewire_cli.results.manifest import read_manifest

Start = Callable[..., Run]


def test_parquet_and_csv_by_url_into_a_table(start: Start, tmp_path: Path) -> None:
    rows = read(write_rows(tmp_path / "rows.jsonl", 300))
    pq.write_table(pa.Table.from_pylist(rows[:200]), tmp_path / "a.parquet")
    with (tmp_path / "b.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, ["id", "references", "prediction"])
        writer.writeheader()
        writer.writerows({**row, "references": json.dumps(row["references"])} for row in rows[200:])
    urls = [f"file://{tmp_path}/a.parquet", f"file://{tmp_path}/b.csv"]
    run = start(*urls, f"file://{tmp_path}/out.parquet", "--part-rows", "64", "--keep-columns", "prediction")
    assert run.wait() == 0, run.told
    table = pq.read_table(tmp_path / "out.parquet").to_pylist()
    expected = straight(tmp_path / "rows.jsonl", tmp_path)
    assert [row["id"] for row in table] == [row["id"] for row in expected]
    assert [row["prediction"] for row in table] == [row["prediction"] for row in rows]
    for one, other in zip(table, expected, strict=True):
        assert abs(one["smile:fast.score"] - other["scores"]["smile:fast"]["score"]) <= 2e-4
    assert not (tmp_path / "out.parquet.parts").exists()
    manifest = read_manifest(tmp_path / "out.parquet.manifest.json")
    assert [each.path for each in manifest.inputs] == urls
    assert manifest.output is None
    assert manifest.counts.statuses == {"smile:fast": {"OK": 300}, "exact_match": {"OK": 300}}


def test_a_folder_of_parts_is_compared_like_an_output(start: Start, tmp_path: Path) -> None:
    for name, first in (("a", 0), ("b", 100)):
        write_rows(tmp_path / f"{name}.jsonl", 100, first=first)
    run = start(str(tmp_path / "[ab].jsonl"), f"{tmp_path}/out/", "--part-rows", "64")
    assert run.wait() == 0, run.told
    names = [path.name for path in sorted((tmp_path / "out").glob("part-*"))]
    assert names == [f"part-0000{file}-000000{part}.done.jsonl" for file in (0, 1) for part in (0, 1)]
    found = [row for name in names for row in read(tmp_path / "out" / name)]
    assert_same(found, straight(tmp_path / "a.jsonl", tmp_path, tmp_path / "b.jsonl"))
    first, figures = str(tmp_path / "out" / names[0]), tmp_path / "figures.json"
    command = [GRADEWIRE, "compare", first, str(tmp_path / "copy.jsonl"), "--quiet", "--json", str(figures)]
    shutil.copy(first, tmp_path / "copy.jsonl")
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    difference = json.loads(figures.read_text())["comparisons"]["copy"]["metrics"]["smile:fast"]["difference"]
    assert difference["value"] == 0
