"""An output that is there already: not touched, gone on with, or refused."""

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Command, answer, write_rows

from gradewire import DeadlineExceeded
from gradewire.testing import StubTransport
from gradewire_cli.results.resumable_output import read_results
from gradewire_proto.v1 import scoring_pb2

ROWS = [{"id": f"row {index}", "references": ["a"], "prediction": "x" * (index % 7 + 1)} for index in range(500)]


def test_existing_output_is_not_touched_without_being_asked(command: Command, tmp_path: Path) -> None:
    file, out = write_rows(tmp_path / "a.jsonl", ROWS[:2]), tmp_path / "out.jsonl"
    out.write_text("precious\n")
    done = command("score", file, "--out", out)
    assert (done.exit_code, out.read_text()) == (2, "precious\n")
    assert "--resume" in done.stderr
    assert command("score", file, "--out", out, "--overwrite").exit_code == 0
    assert len(list(read_results(out))) == 2


def test_resume_scores_only_what_is_missing(command: Command, tmp_path: Path) -> None:
    file, out = write_rows(tmp_path / "a.jsonl", ROWS), tmp_path / "out.jsonl"
    command("score", file, "--out", out, "--quiet")
    straight = out.read_bytes()
    lines = straight.splitlines(keepends=True)
    out.write_bytes(b"".join(lines[:350]) + lines[350][:20])
    asked: list[str] = []

    def noting(request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
        asked.extend(item.id for item in request.items)
        return answer(request)

    done = command("score", file, "--out", out, "--resume", stub=StubTransport(noting))
    assert done.exit_code == 0
    assert out.read_bytes() == straight
    assert sorted(asked) == sorted(row["id"] for row in ROWS[350:])
    assert "500 rows" in done.stderr, "the summary is of all rows"
    assert "150 rows in" in done.stderr, "the rate is of this run"


def test_no_rows_are_added_to_a_file_in_which_a_metric_has_its_former_name(command: Command, tmp_path: Path) -> None:
    file, out = write_rows(tmp_path / "a.jsonl", ROWS[:3]), tmp_path / "out.jsonl"
    assert command("score", file, "--metrics", "smile,calibrated", "--out", out, "--quiet").exit_code == 0
    assert '"calibrated' not in out.read_text()
    assert list(next(read_results(out))[1]["scores"]) == ["smile", "correctness"]
    written = out.read_text()
    former = "".join(written.replace('"correctness', '"calibrated').splitlines(keepends=True)[:2])
    out.write_text(former)
    done = command("score", file, "--metrics", "smile,correctness", "--out", out, "--resume", "--quiet")
    assert (done.exit_code, out.read_text()) == (2, former)
    assert "calibrated is now called correctness" in done.stderr
    assert "--overwrite" in done.stderr
    # It is read as before.
    read = [row for _, row in read_results(out)]
    assert [list(row["scores"]) for row in read] == [["smile", "correctness"]] * 2
    assert all(row["scores"]["correctness"]["line"].startswith("correctness") for row in read)


def test_a_table_in_which_a_metric_has_its_former_name_is_refused_for_its_name(
    command: Command, tmp_path: Path
) -> None:
    file, out = write_rows(tmp_path / "a.jsonl", ROWS[:3]), tmp_path / "out.csv"
    assert command("score", file, "--metrics", "smile,correctness", "--out", out, "--quiet").exit_code == 0
    former = out.read_text().replace("correctness", "calibrated")
    out.write_text(former)
    done = command("score", file, "--metrics", "smile,calibrated", "--out", out, "--resume", "--quiet")
    assert (done.exit_code, out.read_text()) == (2, former)
    assert "calibrated is now called correctness" in done.stderr


def test_resume_scores_a_changed_row_again(command: Command, tmp_path: Path) -> None:
    file, out = write_rows(tmp_path / "a.jsonl", ROWS), tmp_path / "out.jsonl"
    command("score", file, "--out", out, "--quiet")
    changed = [*ROWS[:200], {**ROWS[200], "prediction": "y" * 50}, *ROWS[201:]]
    write_rows(file, changed)
    done = command("score", file, "--out", out, "--resume", "--quiet")
    aside = tmp_path / "out.jsonl.resume"
    assert done.stderr == f"1 earlier results no longer match a row of the input and stay in {aside}\n"
    assert [row["index"] for _, row in read_results(aside)] == [200]
    resumed = out.read_bytes()
    command("score", file, "--out", out, "--overwrite", "--quiet")
    assert resumed == out.read_bytes()
    assert not aside.exists()


@pytest.mark.parametrize("suffix", ["jsonl", "json"])
def test_resume_with_another_input_changes_nothing(command: Command, tmp_path: Path, suffix: str) -> None:
    file, out = write_rows(tmp_path / "a.jsonl", ROWS), tmp_path / "out.jsonl"
    command("score", file, "--out", out, "--quiet")
    # The first row failed, so that nothing at the beginning tells whether the input is the right one.
    first = out.read_bytes().splitlines(keepends=True)[0]
    out.write_bytes(out.read_bytes().replace(first, first.replace(b'"OK"', b'"TIMEOUT"')))
    before = out.read_bytes()
    others = [{**row, "prediction": "z"} for row in ROWS]
    for rows, said in (
        (others, "but none is in this input"),
        (ROWS[:300], "at least 500 rows, but the input has only 300"),
    ):
        wrong = tmp_path / f"b.{suffix}"
        wrong.write_text("\n".join(map(json.dumps, rows)) if suffix == "jsonl" else json.dumps(rows))
        done = command("score", wrong, "--out", out, "--resume", "--quiet")
        assert (done.exit_code, out.read_bytes()) == (2, before)
        assert said in done.stderr
        assert not (tmp_path / "out.jsonl.resume").exists()


def test_rows_that_wait_beside_are_not_lost_to_a_new_run(command: Command, tmp_path: Path) -> None:
    file, out = write_rows(tmp_path / "a.jsonl", ROWS), tmp_path / "out.jsonl"
    command("score", file, "--out", out, "--quiet")
    aside = out.rename(tmp_path / "out.jsonl.resume")
    done = command("score", file, "--out", out)
    assert (done.exit_code, len(list(read_results(aside)))) == (2, 500)
    assert f"{aside} exists" in done.stderr


def test_resume_retries_what_timed_out(command: Command, tmp_path: Path) -> None:
    file, out = write_rows(tmp_path / "a.jsonl", ROWS), tmp_path / "out.jsonl"

    def slow_for_some(request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
        if any(item.id == "row 130" for item in request.items):
            raise DeadlineExceeded("too slow")
        return answer(request)

    done = command("score", file, "--out", out, stub=StubTransport(slow_for_some))
    statuses = [row["scores"]["smile"]["status"] for _, row in read_results(out)]
    assert done.exit_code == 1
    assert [index for index, status in enumerate(statuses) if status == "TIMEOUT"] == list(range(128, 192))
    assert command("score", file, "--out", out, "--resume", "--quiet").exit_code == 0
    resumed = out.read_bytes()
    command("score", file, "--out", out, "--overwrite", "--quiet")
    assert resumed == out.read_bytes()


def test_resume_refuses_another_definition(command: Command, tmp_path: Path) -> None:
    file, out = write_rows(tmp_path / "a.jsonl", ROWS[:3]), tmp_path / "out.jsonl"
    command("score", file, "--out", out, "--quiet")
    done = command("score", file, "--out", out, "--resume", "--metrics", "sbert")
    assert done.exit_code == 2
    assert "metrics smile, but this run computes sbert" in done.stderr
