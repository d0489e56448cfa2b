"""`gradewire label`: the files it refuses, and a run that is killed and goes on."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from tests.cli.conftest import Command, write_rows
from tests.cli.label.test_label_file import table

ROWS = [{"id": f"r{place}", "references": ["cat"], "prediction": "x" * (1 + place)} for place in range(6)]


def start(*arguments: str | Path) -> tuple["subprocess.Popen[str]", list[str]]:
    """Starts the command and reads the addresses that it prints."""
    count = max(1, sum(each == "--annotator" for each in arguments))
    program = "from gradewire_cli import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", program, "label", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    found = [re.match(r"(?:.*): (http://127\.0\.0\.1:\d+/\S+/)$", process.stdout.readline()) for _ in range(count)]
    if not all(found):
        process.kill()
        pytest.fail(process.communicate()[1])
    return process, [each[1] for each in found if each]


def label(url: str, position: int, value: float) -> dict[str, Any]:
    origin = url[: url.index("/", len("http://"))]
    body = json.dumps({"position": position, "label": value}).encode()
    request = Request(f"{url}label", body, {"Origin": origin, "Content-Type": "application/json"})  # noqa: S310 - http
    with urlopen(request, timeout=30) as reply:  # noqa: S310 - the command's own address
        state: dict[str, Any] = json.load(reply)
        return state


def test_a_killed_run_has_lost_nothing_and_the_next_one_goes_on(tmp_path: Path) -> None:
    file, out = write_rows(tmp_path / "answers.jsonl", ROWS), tmp_path / "answers.labels.csv"
    process, (url,) = start(file, "--annotator", "ann")
    for position, value in ((0, 1), (1, 0), (2, 0.25)):
        assert label(url, position, value)["labelled"] == position + 1
    process.kill()
    process.communicate()
    assert table(out) == [["id", "ann"], ["r0", "1"], ["r1", "0"], ["r2", "0.25"]]
    process, (ann, ben) = start(file, "--annotator", "ann", "--annotator", "ben")
    refused = subprocess.run(
        [sys.executable, "-c", "from gradewire_cli import main; main()", "label", file],
        check=False,
        capture_output=True,
        text=True,
    )
    assert (refused.returncode, "another run is writing to" in refused.stderr) == (2, True)
    with urlopen(f"{ann}state", timeout=30) as reply:  # noqa: S310 - the command's own address
        assert json.load(reply)["position"] == 3
    assert label(ben, 0, 0)["agreement"]["items"] == 1
    process.send_signal(2)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 0, said
    assert f"labels in {out}: 3 by ann, 1 by ben" in said
    assert f"gradewire calibrate {file} --add {out} --metric correctness --level" in said
    assert f"gradewire agree {file} --labels-file {out} --labels-map labels=ann,ben" in said
    assert table(out)[1] == ["r0", "1", "0"]


@pytest.mark.parametrize(
    ("rows", "options", "said"),
    [
        ([{"references": ["cat"], "prediction": "x"}], (), "no column for id"),
        ([{**ROWS[0], "prediction": ""}], (), "has no answers to label"),
        ([ROWS[0], ROWS[0]], (), "has the id of"),
        (ROWS, ("--annotator", "id"), "--annotator id: this is the name of another column"),
        # `calibrate --add` would read these annotators' labels as flags and as classes.
        (ROWS, ("--annotator", "Flags"), "--annotator Flags: this is the name of another column"),
        (ROWS, ("--annotator", "error_class"), "--annotator error_class: this is the name of another column"),
        (ROWS, ("--order", "uncertain"), "--order uncertain needs --scores FILE"),
        (ROWS, ("--ask-class",), "--ask-class needs --scores FILE"),
        (ROWS, ("--out", "labels.jsonl"), "the labels are written as CSV"),
        (ROWS, ("--out", "no/labels.csv"), "folder no does not exist"),
    ],
)
def test_rows_and_options_that_cannot_be_labelled_are_refused(
    command: Command, tmp_path: Path, rows: list[dict[str, Any]], options: tuple[str, ...], said: str
) -> None:
    done = command("label", write_rows(tmp_path / "answers.jsonl", rows), *options)
    assert done.exit_code == 2, done.output
    assert said in " ".join(done.stderr.split())
    assert [path.name for path in tmp_path.iterdir()] == ["answers.jsonl"]


def test_scores_of_other_metrics_or_rows_are_refused(command: Command, tmp_path: Path) -> None:
    file, scores = write_rows(tmp_path / "answers.jsonl", ROWS), tmp_path / "scores.jsonl"
    assert command("score", file, "--metrics", "rouge_l", "--out", scores, "--quiet").exit_code == 0
    done = command("label", file, "--scores", scores)
    assert "neither correctness nor smile" in " ".join(done.stderr.split())
    write_rows(file, [{**row, "prediction": "y"} for row in ROWS])
    assert "was made from a different row" in command("label", file, "--scores", scores).stderr
