"""Forms and places of input and output."""

import csv
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests_bulk.conftest import GRADEWIRE, METRICS, Run, assert_same, read, straight, write_rows

from gradewire.manifests import read_manifest

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


def test_a_real_server_scores_as_the_engine_does(start: Start, tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "rows.jsonl", 200)
    server = subprocess.Popen(
        [GRADEWIRE, "serve", "--port", "0", "--disk-directory", str(tmp_path / "server")],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stdout is not None
        address = server.stdout.readline().split()[-1]
        server.stdout.close()
        run = start(rows, tmp_path / "out.jsonl", "--part-rows", "64", "--server", address)
        assert run.wait() == 0, run.told
    finally:
        server.terminate()
        server.wait(timeout=60)
    assert_same(read(tmp_path / "out.jsonl"), straight(rows, tmp_path))
    assert METRICS.split(",") == list(read(tmp_path / "out.jsonl")[0]["scores"])


CLUSTER = """
import logging, os, sys
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
import ray
told = ray.init(num_cpus=3, include_dashboard=False, logging_level=logging.ERROR)
print(told.address_info["gcs_address"], flush=True)
sys.stdin.read()
"""


def test_a_cluster_that_is_there_is_used_and_stays(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A cluster of Ray's asks for the user's own token, and a driver shows it where this says so.
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    rows = write_rows(tmp_path / "rows.jsonl", 200)
    cluster = subprocess.Popen(
        [sys.executable, "-c", CLUSTER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )
    try:
        assert cluster.stdout is not None
        address = cluster.stdout.readline().strip()
        run = start(rows, tmp_path / "out.jsonl", "--part-rows", "64", "--ray-address", address)
        assert run.wait() == 0, run.told
        assert cluster.poll() is None
    finally:
        cluster.communicate(timeout=60)
    assert_same(read(tmp_path / "out.jsonl"), straight(rows, tmp_path))


def test_a_cluster_that_is_not_there_is_an_error(start: Start, tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "rows.jsonl", 10)
    run = start(rows, tmp_path / "out.jsonl", "--ray-address", "127.0.0.1:1")
    assert (run.wait(), "--ray-address 127.0.0.1:1" in run.told) == (3, True), run.told
