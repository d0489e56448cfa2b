"""A bulk run that is killed loses nothing and doubles nothing."""

import signal
from collections.abc import Callable
from pathlib import Path

from tests_bulk.conftest import Run, assert_same, read, straight, write_rows

from gradewire_cli.results.manifest import read_manifest
from gradewire_cli.results.manifest_entries import file_digest, manifest_path

PARTS = ("--part-rows", "50")
ROWS = 1500
Start = Callable[..., Run]


def test_killed_drivers_and_actors_leave_one_result_for_each_row(start: Start, tmp_path: Path) -> None:
    rows, out = write_rows(tmp_path / "rows.jsonl", ROWS), tmp_path / "out.jsonl"
    parts = tmp_path / "out.jsonl.parts"
    first = start(rows, out, *PARTS)
    first.wait_for_parts(parts, 4)
    first.process.kill()
    first.process.wait()
    first.end()
    assert not out.exists()
    second = start(rows, out, *PARTS, "--resume")
    second.wait_for_parts(parts, len(list(parts.glob("part-*.done.jsonl"))) + 4)
    second.actors()[0].send_signal(signal.SIGKILL)
    assert second.wait() == 0, second.told
    assert_same(read(out), straight(rows, tmp_path))
    assert not parts.exists()
    manifest = read_manifest(manifest_path(out))
    assert manifest.output == file_digest(out)
    assert manifest.counts.rows == ROWS
    assert manifest.counts.scored_now is not None
    assert manifest.counts.scored_now < ROWS
    assert manifest.results["workers"] >= 2
    again = start(rows, out, *PARTS, "--resume")
    assert (again.wait(), "is whole: nothing is left to score" in again.told) == (0, True), again.told


def test_an_interrupt_finishes_what_is_in_work_and_says_how_to_go_on(start: Start, tmp_path: Path) -> None:
    rows, out = write_rows(tmp_path / "rows.jsonl", ROWS), tmp_path / "out.jsonl"
    parts = tmp_path / "out.jsonl.parts"
    first = start(rows, out, *PARTS)
    first.wait_for_parts(parts, 3)
    first.process.send_signal(signal.SIGINT)
    assert first.wait() == 130, first.told
    assert "go on with --resume" in first.told
    assert not list(parts.glob(".*"))
    # In an interrupted run a part has all of its rows or is not there.
    assert all(len(path.read_text().splitlines()) == 50 for path in parts.glob("part-*.done.jsonl"))
    other = start(rows, out, "--part-rows", "51", "--resume")
    assert (other.wait(), "--part-rows was 50 and is 51" in other.told) == (2, True), other.told
    again = start(rows, out, *PARTS, "--resume", "--fail-on", "never")
    assert again.wait() == 0, again.told
    assert [row["index"] for row in read(out)] == list(range(ROWS))


def test_a_server_that_is_not_there_is_an_error_before_anything_is_written(start: Start, tmp_path: Path) -> None:
    rows, out = write_rows(tmp_path / "rows.jsonl", 200), tmp_path / "out.jsonl"
    lost = start(rows, out, *PARTS, "--server", "127.0.0.1:1", metrics="exact_match")
    assert lost.wait() == 3, lost.told
    assert "Traceback" not in lost.told
    assert not (tmp_path / "out.jsonl.parts").exists()
