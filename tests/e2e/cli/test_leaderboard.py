"""`gradewire leaderboard` in a process of its own, with the real encoder: killed in the middle, it ends as if not."""

import json
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.e2e.cli.test_runs import WAIT_S, command, environment, finish

__all__ = ["environment"]

QUESTIONS = 300
# By model: what it says of a question whose answer is the number.
SAID = {
    "exact": "{number}",
    "wordy": "I would say that it is {number}, or so.",
    "wrong": "it must be {other}",
}


def files_of(folder: Path) -> list[Path]:
    """A file for each model."""
    found = []
    for model, said in SAID.items():
        rows = [
            {
                "question_id": f"q{number}",
                "question": f"What is number {number}?",
                "references": [str(number)],
                "prediction": said.format(number=number, other=number + 7),
            }
            for number in range(1000, 1000 + QUESTIONS)
        ]
        found.append(folder / f"{model}.jsonl")
        found[-1].write_text("".join(json.dumps(row) + "\n" for row in rows))
    return found


@pytest.mark.hostile
def test_a_killed_run_ends_with_the_same_pairs_and_ratings(environment: Mapping[str, str], tmp_path: Path) -> None:
    files = files_of(tmp_path)

    def start(out: Path, *options: str | Path) -> subprocess.Popen[str]:
        return command("leaderboard", *files, "--by", "smile", "--out", out, *options, environment=environment)

    killed, straight = tmp_path / "killed.jsonl", tmp_path / "straight.jsonl"
    process = start(killed)
    give_up = time.monotonic() + WAIT_S
    while not (killed.is_file() and killed.stat().st_size):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < give_up
        time.sleep(0.01)
    process.kill()
    process.communicate()
    begun = killed.read_bytes()
    boards = [tmp_path / "killed.csv", tmp_path / "straight.csv"]
    code, _, said = finish(start(killed, "--resume", "--csv", boards[0]))
    assert code == 0, said
    code, printed, said = finish(start(straight, "--csv", boards[1]))
    assert code == 0, said
    assert len(begun) < len(killed.read_bytes())
    assert killed.read_bytes() == straight.read_bytes()
    assert boards[0].read_text() == boards[1].read_text()
    assert f"judged {3 * QUESTIONS} pairs by smile" in said
    assert printed.index("exact") < printed.index("wrong")
