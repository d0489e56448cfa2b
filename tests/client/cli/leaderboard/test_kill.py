"""A run that is killed in the middle goes on with the same pairs, verdicts and ratings."""

import subprocess
import sys
import time
from pathlib import Path

from tests.client.cli.conftest import Command, write_rows
from tests.client.cli.leaderboard.test_answers import LENGTHS, rows_of

_PROGRAM = [sys.executable, "-m", "tests.client.cli.leaderboard.slow_board"]
_SECONDS = 60


def test_kill_9(command: Command, tmp_path: Path) -> None:
    files = [write_rows(tmp_path / f"{model}.jsonl", rows_of(model, questions=900)) for model in LENGTHS]
    straight, killed = tmp_path / "straight.jsonl", tmp_path / "killed.jsonl"
    boards = [tmp_path / "straight.csv", tmp_path / "killed.csv"]
    options = ["--by", "smile", "--tie-margin", "0.1", "--resamples", "100", "--quiet"]
    done = command("leaderboard", *files, *options, "--out", straight, "--csv", boards[0])
    assert done.exit_code == 0, done.output

    arguments = ["leaderboard", *map(str, files), *options, "--out", str(killed)]
    process = subprocess.Popen([*_PROGRAM, *arguments], cwd=Path(__file__).parents[4])
    give_up = time.monotonic() + _SECONDS
    while not (killed.is_file() and killed.stat().st_size):
        assert process.poll() is None, "it ended before it could be killed"
        assert time.monotonic() < give_up
        time.sleep(0.01)
    process.kill()
    process.wait()
    begun = killed.read_bytes()
    assert 0 < len(begun) < straight.stat().st_size

    done = command("leaderboard", *files, *options, "--out", killed, "--resume", "--csv", boards[1])
    assert done.exit_code == 0, done.output
    assert killed.read_bytes() == straight.read_bytes()
    assert killed.read_bytes().startswith(begun[: begun.rfind(b"\n") + 1])
    assert boards[0].read_text() == boards[1].read_text()
