"""A judge that rates the rows of a bulk run: in the worker's machine, and behind a server that is not always there."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.judges.prompts import LAVE
from tests.support.judges.smollm2 import NAME, smollm2_repository
from tests.support.servers.llama_server import LlamaServer
from tests_bulk.conftest import GRADEWIRE, Run, assert_same, read, write_rows

Start = Callable[..., Run]
ROWS = 8
PARTS = ("--part-rows", "4")


@pytest.fixture
def prompt(tmp_path: Path) -> Path:
    """A short one: this judge is too small for any, and takes its time for the packaged ones."""
    path = tmp_path / "lave.toml"
    path.write_text(LAVE)
    return path


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """Rows with the question that a judge is shown."""
    path = write_rows(tmp_path / "rows.jsonl", ROWS)
    path.write_text("".join(json.dumps(row | {"question": "Which number is it?"}) + "\n" for row in read(path)))
    return path


def test_a_judge_of_this_machine_rates_as_it_does_without_ray(
    start: Start, tmp_path: Path, rows: Path, prompt: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRADEWIRE_JUDGE_REPOSITORY", str(smollm2_repository()))
    out, other = tmp_path / "out.jsonl", tmp_path / "straight.jsonl"
    judged = ("--judge", NAME, "--prompt", prompt)
    run = start(rows, out, *PARTS, *judged, "--processes", "1", metrics="lave,exact_match")
    assert run.wait() == 0, run.told
    command = [GRADEWIRE, "score", rows, "--out", other, *judged, "--metrics", "lave,exact_match", "--quiet"]
    subprocess.run(
        [*map(str, command), "--disk-directory", str(tmp_path / "other")], check=True, timeout=600, env=os.environ
    )
    assert {row["scores"]["lave"]["status"] for row in read(out)} == {"OK"}
    assert_same(read(out), read(other))


def test_rows_without_an_answer_of_the_judge_are_tried_again_and_no_others(
    start: Start, tmp_path: Path, rows: Path, prompt: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out.jsonl"
    parts = tmp_path / "out.jsonl.parts"
    with LlamaServer() as judge:
        monkeypatch.setenv("JUDGE_KEY", judge.key)
        asked = ("--judge-url", judge.url, "--judge-remote-model", "smollm2", "--judge-key-env", "JUDGE_KEY")
        options = (*PARTS, *asked, "--prompt", prompt, "--retries", "0")
        judge.kill()
        first = start(rows, out, *options, metrics="lave,exact_match")
        assert first.wait() == 1, first.told
        assert "--resume scores them again" in first.told
        assert [row["scores"]["lave"]["status"] for row in read(out)] == ["UNAVAILABLE"] * ROWS
        assert len(list(parts.glob("part-*.unanswered.jsonl"))) == ROWS // 4
        judge.start()
        second = start(rows, out, *options, "--resume", metrics="lave,exact_match")
        assert second.wait() == 0, second.told
    assert [row["id"] for row in read(out)] == [f"row-{number}" for number in range(ROWS)]
    assert {row["scores"]["lave"]["status"] for row in read(out)} == {"OK"}
    assert not parts.exists()
