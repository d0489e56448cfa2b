"""The output that parts become, and the check that each row is there once."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
import pyarrow.parquet as pq
import pytest
from tests.client.cli.bulk.conftest import PART_ROWS, Bulk, answers
from tests.client.cli.conftest import Command
from tests.support.syncs import Syncs

from gradewire.cli.bulk.assembling import Assembly, IncompleteError
from gradewire.cli.bulk.parts import PartId

Make = Callable[..., Bulk]


def assembly(run: Bulk) -> Assembly:
    return Assembly(store=run.store, found=run.store.parts(), ends=run.ends)


def checked(run: Bulk) -> list[Any]:
    rows: list[Any] = []
    assembly(run).check(rows.append)
    return rows


def test_the_output_is_what_score_writes(bulk: Make, command: Command, tmp_path: Path) -> None:
    run = bulk(answers(PART_ROWS * 2 + 1), answers(2))
    run.run()
    assembly(run).write(str(tmp_path / "bulk.jsonl"))
    assert command("score", *run.source.paths, "--out", tmp_path / "score.jsonl", "--metrics", "smile").exit_code == 0
    assert (tmp_path / "bulk.jsonl").read_bytes() == (tmp_path / "score.jsonl").read_bytes()
    assert [row["index"] for row in checked(run)] == list(range(11))


def test_a_table_is_what_score_writes(bulk: Make, command: Command, tmp_path: Path) -> None:
    run = bulk(answers(PART_ROWS + 1))
    run.run()
    assembly(run).write(str(tmp_path / "bulk.parquet"))
    assert command("score", *run.source.paths, "--out", tmp_path / "s.parquet", "--metrics", "smile").exit_code == 0
    assert pq.read_table(tmp_path / "bulk.parquet").equals(pq.read_table(tmp_path / "s.parquet"))
    assert not list(tmp_path.glob(".*"))


def test_an_output_may_be_on_another_file_system(bulk: Make, tmp_path: Path) -> None:
    run = bulk(answers(PART_ROWS + 1))
    run.run()
    assembly(run).write(str(tmp_path / "here.jsonl"))
    assembly(run).write("memory://assembled/there.jsonl")
    store = fsspec.filesystem("memory")
    assert store.cat_file("/assembled/there.jsonl") == (tmp_path / "here.jsonl").read_bytes()
    store.rm("/assembled", recursive=True)


def test_a_missing_part_is_refused(bulk: Make) -> None:
    run = bulk(answers(PART_ROWS * 2))
    run.run()
    run.store.remove(PartId(0, 1).name(answered=True))
    with pytest.raises(IncompleteError, match="1 parts are not in"):
        checked(run)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: [*lines, lines[-1]], "row 3 comes after row 3"),
        (lambda lines: lines[:-1], "have 7 rows and the file 8"),
        (lambda lines: [lines[1], lines[0], *lines[2:]], "row 0 comes after row 1"),
    ],
)
def test_rows_that_are_not_each_there_once_are_refused(
    bulk: Make, change: Callable[[list[bytes]], list[bytes]], message: str
) -> None:
    run = bulk(answers(PART_ROWS * 2))
    run.run()
    lines = run.store.read_part(PartId(0, 0), answered=True).splitlines(keepends=True)
    run.store.write_part(PartId(0, 0), b"".join(change(lines)), answered=True)
    with pytest.raises(IncompleteError, match=message):
        checked(run)


def test_every_part_is_an_output_by_itself(bulk: Make) -> None:
    run = bulk(answers(PART_ROWS * 2))
    run.run()
    names = [part.name(answered=True) for part in run.store.parts()]
    lines = [json.loads((Path(run.store.place) / name).read_text().splitlines()[0]) for name in names]
    assert [line["scores"]["smile"]["line"] for line in lines] == [run.lines["smile"]] * 2


@pytest.mark.parametrize("name", ["out.jsonl", "out.parquet", "out.csv"])
@pytest.mark.parametrize("place", ["", "file://"])
def test_an_output_outlasts_a_power_cut_before_its_parts_go(
    bulk: Make, tmp_path: Path, syncs: Syncs, place: str, name: str
) -> None:
    run = bulk(answers(PART_ROWS + 1))
    run.run()
    syncs.calls.clear()
    assembly(run).write(f"{place}{tmp_path / name}")
    syncs.assert_lasts(tmp_path / name)
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("number", [0, 1, 2])
@pytest.mark.parametrize("left_lines", [0, 1, 1.5])
def test_a_part_that_a_kill_left_unfinished_is_named(bulk: Make, number: int, left_lines: float) -> None:
    run = bulk(answers(PART_ROWS * 2 + 2))
    run.run()
    name = PartId(0, number).name(answered=True)
    lines = run.store.read(name).splitlines(keepends=True)
    # As a file system leaves it whose move is a copy.
    begun = lines[int(left_lines)][:20] if left_lines % 1 else b""
    run.store.write(name, b"".join(lines[: int(left_lines)]) + begun)
    with pytest.raises(IncompleteError, match=f"{name} is not whole: remove it, and --resume scores its rows again"):
        checked(run)
    run.store.remove(name)
    run.run()
    assert len(checked(run)) == PART_ROWS * 2 + 2
