"""The installed `gradewire compare` with the real encoder: real answers, breaks, and how a run goes on."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

GRADEWIRE = Path(sys.executable).with_name("gradewire")
EXAMPLES = Path(__file__).parents[3] / "examples" / "answers.jsonl"
WAIT_S = 90.0
# More than the batches in flight at a time, so that a run can be broken in its middle.
ROWS = 150


@pytest.fixture
def environment(minilm: Path, tmp_path: Path) -> Mapping[str, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GRADEWIRE_")}
    given = {
        "GRADEWIRE_MODEL_REPOSITORY": str(minilm),
        "GRADEWIRE_DISK_DIRECTORY": str(tmp_path / "store"),
        # Each new store would get a new 8-bit graph, which takes seconds to write.
        "GRADEWIRE_WINDOW_CHOICE": "fp32",
    }
    return clean | given


def start(environment: Mapping[str, str], *arguments: str | Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [GRADEWIRE, "compare", *map(str, arguments)],
        env=dict(environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str], code: int = 0) -> str:
    out, err = process.communicate(timeout=WAIT_S)
    assert process.returncode == code, err
    return out


def files(folder: Path, rows: list[dict[str, Any]]) -> list[Path]:
    """The rows, and the same with other answers."""
    changed = [row | {"prediction": f"I would say {row['references'][0]}, I think."} for row in rows]
    paths = [folder / "base.jsonl", folder / "new.jsonl"]
    for path, answers in zip(paths, (rows, changed), strict=True):
        path.write_text("".join(json.dumps(row) + "\n" for row in answers), encoding="utf-8")
    return paths


def test_answers_that_quote_the_reference_win_over_others(tmp_path: Path, environment: Mapping[str, str]) -> None:
    examples = [json.loads(line) for line in EXAMPLES.read_text(encoding="utf-8").splitlines()]
    wrong = [
        {
            "id": str(number),
            "question": row["question"],
            "references": row["references"],
            "prediction": "No idea, sorry.",
        }
        for number, row in enumerate(examples)
    ]
    figures, page = tmp_path / "figures.json", tmp_path / "page.html"
    options = ("--metrics", "smile,exact_match", "--json", figures, "--html", page)
    printed = finish(start(environment, *files(tmp_path, wrong), *options))
    assert f"new minus base: {len(wrong)} pairs" in printed
    side = json.loads(figures.read_text())["comparisons"]["new"]
    outcomes = side["outcomes"]["smile"]
    assert (outcomes["losses"], outcomes["undecided"]) == (0, 0)
    assert outcomes["wins"] > 0.9 * len(wrong)
    assert side["metrics"]["smile"]["difference"]["value"] > 0.3
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    # The same by the exit code.
    failing = start(environment, *files(tmp_path, wrong), "--metrics", "smile", "--fail-if", "smile.wins > 0.9")
    finish(failing, code=4)


def test_the_gate_of_the_guide_fails_on_denied_answers(tmp_path: Path, environment: Mapping[str, str]) -> None:
    words = ("copper", "Lisbon", "a violin", "1969", "photosynthesis", "the heart", "Mars", "seven", "snow", "chess")
    right = [
        {
            "id": f"{word} {turn}",
            "question": f"What is hidden in box {turn} of the {word} series?",
            "references": [word],
            "prediction": f"It is {word}.",
        }
        for word in words
        for turn in range(3)
    ]
    denied = [
        row | ({"prediction": f"It is not {row['references'][0]}."} if n % 2 else {}) for n, row in enumerate(right)
    ]
    base, again, new = (tmp_path / f"{name}.jsonl" for name in ("base", "again", "new"))
    for path, rows in ((base, right), (again, right), (new, denied)):
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    gate = ("--fail-if", "correctness.mean.high < -0.01")
    finish(start(environment, base, again, *gate))
    failing = start(environment, base, new, *gate)
    _, said = failing.communicate(timeout=WAIT_S)
    assert failing.returncode == 4, said
    assert "--fail-if 'correctness.mean.high < -0.01' is true for new: the value is -0." in said


@pytest.mark.hostile
def test_kill_9_and_resume_end_as_a_straight_run(tmp_path: Path, environment: Mapping[str, str]) -> None:
    rows = [
        {"id": f"r{number}", "references": [f"number {number}"], "prediction": f"answer {number} of {number * 7}"}
        for number in range(ROWS)
    ]
    paths, out = files(tmp_path, rows), tmp_path / "pairs.jsonl"
    killed = start(environment, *paths, "--metrics", "smile", "--out", out)
    scores, give_up = tmp_path / "pairs.scores.jsonl", time.monotonic() + WAIT_S
    while not (scores.exists() and scores.stat().st_size):
        assert killed.poll() is None, killed.communicate()
        assert time.monotonic() < give_up
        time.sleep(0.005)
    killed.kill()
    killed.communicate()
    done = scores.read_bytes().count(b"\n")
    assert 0 < done < 2 * ROWS
    resumed = finish(start(environment, *paths, "--metrics", "smile", "--out", out, "--resume"))
    straight = finish(start(environment, *paths, "--metrics", "smile", "--out", tmp_path / "straight.jsonl"))
    assert resumed == straight
    winners = [
        [(row["id"], row["winner"]) for row in map(json.loads, path.read_text(encoding="utf-8").splitlines())]
        for path in (out, tmp_path / "straight.jsonl")
    ]
    assert winners[0] == winners[1]
    assert len(winners[0]) == ROWS
