"""A run that is killed in the middle goes on with the same pairs, verdicts and ratings."""

import subprocess
import sys
import time
from pathlib import Path

from tests.cli.conftest import Command, write_rows
from tests.cli.leaderboard.test_run_by_judge import Judge, files_of
from tests.cli.leaderboard.test_run_judging import LENGTHS, rows_of

from gradewire.testing import StubTransport

_PROGRAM = [sys.executable, "-m", "tests.cli.leaderboard.slow_board"]
_SECONDS = 60


def killed(arguments: list[str], out: Path, lines: int) -> bytes:
    """What a run leaves that is killed as soon as it has written so many lines."""
    process = subprocess.Popen([*_PROGRAM, *arguments, "--out", str(out)], cwd=Path(__file__).parents[3])
    give_up = time.monotonic() + _SECONDS
    while not (out.is_file() and out.read_bytes().count(b"\n") >= lines):
        assert process.poll() is None, "it ended before it could be killed"
        assert time.monotonic() < give_up
        time.sleep(0.005)
    process.kill()
    process.wait()
    return out.read_bytes()


def same_after_a_kill(
    command: Command, folder: Path, files: list[Path], options: list[str], lines: int, stub: StubTransport | None = None
) -> None:
    straight, out = folder / "straight.jsonl", folder / "killed.jsonl"
    boards = [folder / "straight.csv", folder / "killed.csv"]
    arguments = ["leaderboard", *map(str, files), *options, "--resamples", "100", "--quiet"]
    done = command(*arguments, "--out", straight, "--csv", boards[0], stub=stub)
    assert done.exit_code == 0, done.output
    begun = killed(arguments, out, lines)
    assert lines <= begun.count(b"\n") < straight.read_bytes().count(b"\n")
    done = command(*arguments, "--out", out, "--resume", "--csv", boards[1], stub=stub)
    assert done.exit_code == 0, done.output
    assert out.read_bytes() == straight.read_bytes()
    assert out.read_bytes().startswith(begun[: begun.rfind(b"\n") + 1])
    assert boards[0].read_text() == boards[1].read_text()


def test_a_metric_chooses(command: Command, tmp_path: Path) -> None:
    files = [write_rows(tmp_path / f"{model}.jsonl", rows_of(model, questions=900)) for model in LENGTHS]
    same_after_a_kill(command, tmp_path, files, ["--by", "smile", "--tie-margin", "0.1"], 1)


def test_a_judge_is_asked_about_chosen_pairs(command: Command, tmp_path: Path) -> None:
    options = ["--by", "compare", "--target-width", "120"]
    same_after_a_kill(command, tmp_path, files_of(tmp_path, questions=80), options, 50, Judge())
