"""A run of `benchmarks/gpu.sh`: its steps, its report, and its end. Steps for a GPU are rehearsed on the CPU."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from benchmarks.gpu.pieces import archive, cut
from benchmarks.gpu.report import GOALS, report, table
from benchmarks.gpu.run import bench_of, main, parser_of_options
from benchmarks.gpu.step_processes import Outcome
from tests.benchmarks.gpu.conftest import QUICK
from tests.benchmarks.gpu.test_gpu import WITHOUT

ROOT = Path(__file__).parents[3]
HERE = {**os.environ, **QUICK, "PYTHONPATH": os.pathsep.join(sys.path)}
FAST = {
    "sbert": Outcome([{"items/s": 30_000}, {"items/s": 26_000}]),
    "smile": Outcome([{"cold rows/s": 3_500.0}, {"cold rows/s": 1_000.0}], "stopped: the budget was used up"),
    "script": Outcome([{"script": "tuned", "rows/s": 700.0}, {"script": "untuned", "rows/s": 100.0}]),
    "one-answer": Outcome([{"p50, ms": 3.0, "p99, ms": 7.3}], seconds=9.6),
}
TITLES = {name: f"title of {name}" for name in FAST}


def command_for(repository: Path, output: Path, *options: str) -> list[str]:
    command = [sys.executable, "-m", "benchmarks.gpu.run", "--repository", str(repository), "--output", str(output)]
    return [*command, "--data", str(output / "nowhere"), "--seconds", "0.05", *options]


def run(command: list[str], env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)


def test_values_stand_beside_what_they_must_reach() -> None:
    rows = [tuple(goal.row(FAST).values()) for goal in GOALS]
    assert rows == [
        ("`sbert` through gRPC, items/s", "≥ 25,000", "30,000", "reached"),
        ("`smile`, rows/s cold", "≥ 4,000", "3,500", "missed"),
        ("the same, times the tuned script", "≥ 5", "5", "reached"),
        ("one new answer, p50 in ms", "≤ 3", "3", "reached"),
        ("one new answer, p99 in ms", "≤ 5", "7.3", "missed"),
    ]
    assert {tuple(goal.row({}).values())[2:] for goal in GOALS} == {("", "not measured")}


def test_a_report_has_each_step_with_its_goals_and_its_reason() -> None:
    text = report(WITHOUT, TITLES, FAST, rehearsal=False)
    assert "rehearsal" not in text
    assert "not usable: there is no GPU" in text
    part = text.partition("## title of smile\n")[2].partition("## ")[0]
    assert "| 3500 |" in part
    assert "stopped: the budget was used up" in part
    assert "Goal: `smile`, rows/s cold ≥ 4,000; 3,500 measured: missed." in part
    assert "(10 s)" in text
    assert "**A rehearsal on the CPU" in report(WITHOUT, TITLES, {}, rehearsal=True)
    assert table([{"a": 0.5, "b": 2}]) == ["| a | b |", "| --- | --- |", "| 0.5 | 2 |"]


def test_a_rehearsal_runs_a_step_in_a_process_of_its_own(minilm: Path, tmp_path: Path) -> None:
    done = run(command_for(minilm, tmp_path, "--device", "cpu", "--only", "parity"), HERE)
    assert done.returncode == 0, done.stderr
    (step,) = json.loads((tmp_path / "report.json").read_text())["steps"].values()
    assert step["why"] == ""
    assert step["rows"][0]["least cosine to the CPU's"] == pytest.approx(1)
    text = (tmp_path / "report.md").read_text()
    assert text in done.stdout
    assert "**A rehearsal on the CPU" in text
    assert (tmp_path / "parity.log").is_file()


@pytest.mark.hostile  # seconds of servers and clients, as the pack's run below has them
def test_a_rehearsal_runs_several_steps(minilm: Path, tmp_path: Path) -> None:
    names = ["parity", "tokens", "smile", "script"]
    options = ["--device", "cpu", "--checkpoint", str(tmp_path / "checkpoint"), "--only", *names]
    done = run(command_for(minilm, tmp_path, *options), HERE)
    assert done.returncode == 0, done.stderr
    content: dict[str, Any] = json.loads((tmp_path / "report.json").read_text())
    steps = content["steps"]
    assert list(steps) == names
    whys = {name: step["why"] for name, step in steps.items()}
    assert whys.pop("script").startswith(("not run: this Python lacks torch", f"not run: {tmp_path / 'checkpoint'}"))
    assert set(whys.values()) == {""}
    assert [row["client processes"] for row in steps["smile"]["rows"]] == [2]
    assert all((tmp_path / f"{name}.log").is_file() for name in names)


def test_without_a_gpu_a_run_says_so_in_one_line_per_step(minilm: Path, tmp_path: Path) -> None:
    names = ["tokens", "own-judge"]
    done = run(command_for(minilm, tmp_path, "--only", *names), HERE)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.partition("# gradewire on this machine")[0].splitlines()
    assert len(lines) == 2
    assert all(": not run: " in line and "CUDAExecutionProvider" in line for line in lines)


# Both signals end a step in test_step_processes.py.
@pytest.mark.parametrize("sent", [pytest.param(signal.SIGINT, marks=pytest.mark.hostile), signal.SIGTERM])
def test_a_run_that_is_ended_leaves_its_report_and_no_process(
    sent: signal.Signals, minilm: Path, tmp_path: Path
) -> None:
    options = ["--device", "cpu", "--seconds", "300", "--only", "parity", "sbert"]
    command = command_for(minilm, tmp_path, *options)
    with subprocess.Popen(command, cwd=ROOT, env=HERE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as started:
        below = wait_for_server(psutil.Process(started.pid))
        started.send_signal(sent)
        assert started.wait(60) != 0
    gone, alive = psutil.wait_procs(below, timeout=30)
    assert len(gone) > 2
    assert alive == []
    steps = json.loads((tmp_path / "report.json").read_text())["steps"]
    assert list(steps) == ["parity"]
    assert len(steps["parity"]["rows"]) == 1


def wait_for_server(run: psutil.Process) -> list[psutil.Process]:
    """All processes of a run that has started a server and its clients."""
    give_up_s = time.monotonic() + 120
    while True:
        below = run.children(recursive=True)
        lines = [" ".join(each.cmdline()) for each in below if each.is_running() and each.status() != "zombie"]
        if any("serve" in line for line in lines) and any("spawn_main" in line for line in lines):
            return below
        assert time.monotonic() < give_up_s, "no server was started"
        time.sleep(0.25)  # to read all processes takes a while


def test_a_pack_in_parts_is_joined_and_run(minilm: Path, tmp_path: Path) -> None:
    machine = tmp_path / "machine"
    (machine / "benchmarks").mkdir(parents=True)
    for path in (ROOT / "benchmarks").iterdir():
        (machine / "benchmarks" / path.name).symlink_to(path)
    (machine / "benchmarks" / "gpu").unlink()
    shutil.copytree(ROOT / "benchmarks" / "gpu", machine / "benchmarks" / "gpu")
    (machine / "benchmarks" / "gpu.sh").unlink()
    shutil.copy(ROOT / "benchmarks" / "gpu.sh", machine / "benchmarks")
    for name in ("server", "client", "model_repo", "proto"):
        (machine / name).symlink_to(ROOT / name)
    scratch = tmp_path / "scratch"
    (scratch / "site").mkdir(parents=True)
    (scratch / "site" / "python-version").write_text("3.11")
    (scratch / "rows").mkdir()
    row = {"question": "?", "references": ["a dog"], "prediction": "it is a red dog", "label": 1}
    (scratch / "rows" / "evouna_dev.jsonl").write_text((json.dumps(row) + "\n") * 30)
    (scratch / "models").mkdir()
    (scratch / "models" / "all-MiniLM-L6-v2").symlink_to((minilm / "all-MiniLM-L6-v2").resolve())
    archives = [tmp_path / f"{name}.tar.xz" for name in ("site", "rows", "models")]
    for path in archives:
        archive(scratch / path.name.partition(".")[0], path)
    (machine / ".gpu-pack").mkdir()
    assert len(cut(archives, machine / ".gpu-pack", 200)) > 3
    command = ["bash", str(machine / "benchmarks" / "gpu.sh"), "--device", "cpu", "--seconds", "0.05"]
    done = run([*command, "--only", "smile"], {**QUICK, "PATH": os.environ["PATH"], "PYTHON": sys.executable})
    assert done.returncode == 0, done.stderr
    steps = json.loads((machine / ".gpu-pack" / "report" / "report.json").read_text())["steps"]
    assert steps["smile"]["why"] == ""
    assert {row["rows"] for row in steps["smile"]["rows"]} == {"24 EVOUNA"}
    assert "reached" in done.stdout or "missed" in done.stdout


def test_an_unknown_step_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["gpu.sh", "--only", "tokens", "weather"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "--only: there is no step weather. Steps are: parity, " in capsys.readouterr().err


def test_without_a_gpu_its_encoder_need_not_be_built(minilm: Path) -> None:
    given = parser_of_options().parse_args(["--repository", str(minilm)])
    without_gpu = bench_of(given, 0.0)
    assert without_gpu.machine.gpu.index is None
    assert without_gpu.gpu == without_gpu.cpu
    assert not without_gpu.rehearsal
