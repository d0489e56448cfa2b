"""The examples of the pages about the Python client run as they stand, one after the other."""

import re
from pathlib import Path
from typing import Any

import pytest
from tests.support.servers.server_process import ServerProcess

DOCS = Path(__file__).parents[3] / "docs"
PAGE = DOCS / "reference" / "client.md"
RUNS_PAGE = DOCS / "guides" / "compare.md"
LOOPS_PAGE = DOCS / "guides" / "training-loops.md"


def test_every_example_runs(
    server: ServerProcess,
    minilm: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("GRADEWIRE_MODEL_REPOSITORY", str(minilm))
    monkeypatch.setenv("GRADEWIRE_DISK_DIRECTORY", str(tmp_path))
    page = PAGE.read_text(encoding="utf-8").replace("127.0.0.1:50051", server.address)
    blocks = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    assert len(blocks) == page.count("```python") >= 7
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)  # noqa: S102 - the page is ours
    assert "q1 OK 0." in capsys.readouterr().out
    assert all(future.done() and future.exception() is None for future in names["futures"])
    assert names["right"] > 0


def test_two_runs_are_compared(server: ServerProcess, capsys: pytest.CaptureFixture[str]) -> None:
    block = re.findall(r"```python\n(.*?)```", RUNS_PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)[0]
    block = block.replace("127.0.0.1:50051", server.address)
    exec(compile(block, str(RUNS_PAGE), "exec"), {})  # noqa: S102 - the page is ours
    difference, wins = capsys.readouterr().out.split()
    assert 0.1 < float(difference) <= 1
    assert wins == "2"


def test_the_training_loop_runs(server: ServerProcess, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", LOOPS_PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    (block,) = (each for each in blocks if "client.submit(" in each)
    block = block.replace("127.0.0.1:50051", server.address)
    exec(compile(block, str(LOOPS_PAGE), "exec"), {})  # noqa: S102 - the page is ours
    steps = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert {step for step, _ in steps} == {"0", "1", "2"}
    assert all(0.5 < float(mean) <= 1 for _, mean in steps)


def test_the_loop_with_a_spool_runs(
    server: ServerProcess, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    block = re.findall(r"```python\n(.*?)```", LOOPS_PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)[0]
    block = block.replace("127.0.0.1:50051", server.address)
    exec(compile(block, str(LOOPS_PAGE), "exec"), {})  # noqa: S102 - the page is ours
    steps = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [(step, state) for step, state, _ in steps] == [("0", "scored"), ("100", "scored"), ("200", "scored")]
    assert all(0.5 < float(mean) <= 1 for *_, mean in steps)
    assert (tmp_path / "runs/1/scores.csv").is_file()
