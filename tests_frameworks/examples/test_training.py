"""Examples train small models beside a real server, and its scores say that they learn."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tests.support.servers.server_process import ServerProcess

ROOT = Path(__file__).parents[2]


def run(module: str, *arguments: str) -> str:
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-m", *module.split(), *arguments],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout


def learned(means: list[float]) -> bool:
    """Random answers are right once in ten times, and the last ones nearly always."""
    return means[-1] > 0.95 > means[0] and all(0 <= mean <= 1 for mean in means)


def test_a_plain_loop(server: ServerProcess, tmp_path: Path) -> None:
    run("examples.training.plain_loop", "--server", server.address, "--directory", str(tmp_path))
    with (tmp_path / "scores.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    exact = [row for row in rows if row["metric"] == "exact_match"]
    assert [int(row["step"]) for row in exact] == list(range(25, 201, 25))
    assert learned([float(row["mean"]) for row in exact])
    assert {row["items"] for row in rows} == {row["scored"] for row in rows} == {"100"}
    assert all("@" in row["line"] and row["digest"] for row in rows if row["metric"] == "smile")
    events = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert len(events.Tensors("validation/smile/mean")) == 8


def test_lightning_on_two_ranks(server: ServerProcess, tmp_path: Path) -> None:
    arguments = ("--server", server.address, "--directory", str(tmp_path), "--devices", "2", "--wait-s", "60")
    run("examples.training.lightning_trainer", *arguments)
    with (tmp_path / "csv/version_0/metrics.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    steps = [int(row["step"]) for row in rows]
    means = [float(row["validation/exact_match/mean"]) for row in rows]
    assert steps == sorted(steps)
    assert len(steps) == 3
    assert learned(means)
    finished = [json.loads(line) for line in (tmp_path / "spool/scores.jsonl").read_text().splitlines()]
    assert [scores["items"] for scores in finished] == [100, 100, 100]
    events = EventAccumulator(str(tmp_path / "tensorboard/version_0")).Reload()
    logged = [(event.step, event.value) for event in events.Scalars("validation/exact_match/mean")]
    assert [step for step, _ in logged] == steps
    best = steps[means.index(max(means))]
    assert [path.name for path in (tmp_path / "best").iterdir()] == [f"step={best}.ckpt"]


@pytest.mark.parametrize(
    ("launcher", "steps"),
    [("", [40, 80, 120, 160, 200]), ("torch.distributed.run --nproc-per-node 2 -m", [40, 80, 100])],
)
def test_hugging_face_keeps_the_best_model_by_its_scores(
    server: ServerProcess, tmp_path: Path, launcher: str, steps: list[int]
) -> None:
    arguments = ("--server", server.address, "--directory", str(tmp_path), "--wait-s", "60")
    run(f"{launcher} examples.training.hugging_face_trainer", *arguments)
    state: dict[str, Any] = json.loads((tmp_path / "trainer_state.json").read_text())
    logged = [
        (entry["step"], entry["eval_exact_match"]) for entry in state["log_history"] if "eval_exact_match" in entry
    ]
    means = dict(logged)
    assert [step for step, _ in logged] == steps
    assert learned(list(means.values()))
    assert state["best_metric"] == max(means.values())
    assert means[state["best_global_step"]] == state["best_metric"]
    finished = [json.loads(line) for line in (tmp_path / "validation/scores.jsonl").read_text().splitlines()]
    assert [scores["items"] for scores in finished] == [100] * len(steps)


def test_torchmetrics_on_two_ranks(server: ServerProcess) -> None:
    launcher = "torch.distributed.run --nproc-per-node 2 -m examples.training.torch_metric_ranks"
    lines = run(launcher, "--server", server.address).splitlines()
    printed = sorted((json.loads(line) for line in lines), key=lambda said: (said["step"], said["rank"]))
    assert [(said["step"], said["rank"]) for said in printed] == [(10, 0), (10, 1), (200, 0), (200, 1)]
    for first, second in (printed[:2], printed[2:]):
        assert {**first, "rank": 1} == second
        assert first["mine"] == {"exact_match": {"OK": 50}, "smile": {"OK": 50}}
    assert learned([said["exact_match"] for said in printed])
