"""A training loop goes on while the real server is killed, and every step gets its scores."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.servers.server_process import ServerProcess, lasting_port

from gradewire import Client, Scorer
from gradewire.integrations import StepState, ValidationScorer
from gradewire.integrations.training.sinks import CsvSink

METRICS = "smile,exact_match"
_DEAD_S = 2.0
GRADEWIRE = Path(sys.executable).with_name("gradewire")


def answered(step: int) -> list[dict[str, object]]:
    """Of each step other texts, so that nothing comes from a cache."""
    return [
        {"references": ["a cat", f"{row} cats"], "prediction": f"{row} small kittens, I think, at step {step}"}
        for row in range(3)
    ]


@pytest.fixture
def mortal(tmp_path: Path, minilm: Path) -> Iterator[ServerProcess]:
    """A server that comes back at the same port."""
    settings = {"port": lasting_port(), "model_repository": minilm, "judge_backend": "none", "drain_s": 0}
    with ServerProcess(tmp_path, **settings) as server:
        yield server


def test_a_killed_server_loses_no_step(mortal: ServerProcess, tmp_path: Path) -> None:
    sink = CsvSink(tmp_path / "scores.csv")
    with ValidationScorer(mortal.address, METRICS, directory=tmp_path / "spool", sinks=[sink]) as validation:
        states = [validation.submit(step, answered(step)) for step in range(10)]
        mortal.kill()
        killed_at_s = time.monotonic()
        step = 10
        while time.monotonic() - killed_at_s < _DEAD_S:
            states.append(validation.submit(step, answered(step)))
            time.sleep(0.1)  # a step of the training
            step += 1
        assert any(scores.state is StepState.NOT_SCORED for scores in validation.results())
        mortal.start()
        mortal.wait_until_serving()
        states += [validation.submit(late, answered(late)) for late in range(step, step + 5)]
        assert validation.wait(60)
        results = validation.results()
    assert set(states) == {StepState.NOT_SCORED}
    assert [scores.step for scores in results] == list(range(len(states)))
    assert {scores.state for scores in results} == {StepState.SCORED}
    assert len((tmp_path / "scores.csv").read_text().splitlines()) == 1 + 2 * len(states)
    with Client(mortal.address) as client:
        for scores in (results[0], results[12], results[-1]):
            summary = client.score(answered(scores.step), METRICS).summary()
            for label, metric in scores.metrics.items():
                assert metric.mean == summary[label].mean
                assert metric.not_scored_share == 0.0


def test_a_loop_without_a_server_has_the_same_scores(minilm: Path, tmp_path: Path) -> None:
    with Scorer.embedded(model_repository=minilm, disk_directory=tmp_path / "store", judge_backend="none") as scorer:
        with ValidationScorer(scorer, METRICS, directory=tmp_path / "spool") as validation:
            validation.submit(1, answered(1))
            assert validation.wait(60)
            (scores,) = validation.results()
        summary = scorer.score(answered(1), METRICS).summary()
    assert {label: metric.mean for label, metric in scores.metrics.items()} == {
        label: figures.mean for label, figures in summary.items()
    }


def test_the_rows_of_two_checkpoints_are_compared_as_outputs_of_score(server: ServerProcess, tmp_path: Path) -> None:
    rows = [{"id": f"q{number}", "question": f"What is {number}?", "references": [f"{number}"]} for number in range(30)]
    answers = {
        100: [{**row, "prediction": "I do not know."} for row in rows],
        200: [{**row, "prediction": f"It is {row['references'][0]}."} for row in rows],
    }
    kept = tmp_path / "rows"
    with ValidationScorer(server.address, METRICS, directory=tmp_path / "spool", rows_directory=kept) as validation:
        for step, items in answers.items():
            validation.submit(step, items)
        assert validation.wait(60)
    files = [kept / f"{validation.run}/validation/step_{step}.jsonl" for step in answers]
    written = tmp_path / "answers.jsonl"
    written.write_text("".join(json.dumps(row) + "\n" for row in answers[200]))
    gradewire("score", written, "--server", server.address, "--metrics", METRICS, "--out", tmp_path / "scores.jsonl")
    rows_of = [
        [json.loads(line) for line in path.read_text().splitlines()] for path in (files[1], tmp_path / "scores.jsonl")
    ]
    ours, theirs = [[{key: row[key] for key in ("id", "index", "scores")} for row in found] for found in rows_of]
    assert ours == theirs
    printed = gradewire("compare", *files, "--by", "smile")
    assert "step_200 minus step_100: 30 pairs" in printed
    assert "answer of step_200" in printed, "the rows that gained most are shown with their answers"
    assert "It is 1" in printed
    failed = subprocess.run(
        [GRADEWIRE, "compare", *files[::-1], "--fail-if", "smile.mean.high < 0"], capture_output=True, check=False
    )
    assert failed.returncode == 4


def gradewire(*arguments: str | Path) -> str:
    return subprocess.run([GRADEWIRE, *arguments], check=True, capture_output=True, text=True).stdout
