"""`gradewire bench capacity`, with the measurements that come with gradewire and with files of `bench load`."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.client.cli.conftest import Command

from gradewire.load_testing.capacity.costs import shipped_measurements
from gradewire.manifests import file_digest, read_manifest


def test_capacity_from_the_measurements_that_come_with_gradewire(command: Command, tmp_path: Path) -> None:
    out = tmp_path / "capacity.json"
    given = ("--rate", "2000", "--words", "12", "--hit-rate", "0.6", "--core-hour", "0.04")
    done = command("bench", "capacity", *given, "--json", out)
    assert done.exit_code == 0, done.output
    document = json.loads(out.read_text())
    needs = document["needs"]
    assert needs["busy_cores"] == pytest.approx(2000 * needs["cpu_s"])
    assert needs["cores"] >= needs["busy_cores"] / 0.6
    assert document["cost_of_a_million"] == pytest.approx(needs["cores"] * 0.04 / (2000 * 3600) * 1e6)
    assert f"cores to have, at most 60% busy {needs['cores']:>10}".split() == next(
        line.split() for line in done.output.splitlines() if "cores to have" in line
    )
    assert "the model is off by at most" in done.output
    assert "was busy" not in done.output, "docs/operate/capacity.md says that nothing else ran"
    manifest = read_manifest(tmp_path / "capacity.json.manifest.json")
    assert manifest.command == "bench capacity"
    assert manifest.parameters["words"] == 12
    assert list(manifest.metrics) == ["smile:fast"]
    assert manifest.counts.rows == len(document["points"])
    assert manifest.results == {"cores": needs["cores"], "processes": needs["processes"], "gpus": None}
    for rate, said in (("nan", "nan is no finite number"), ("1e300", "is not in the range")):
        nonsense = command("bench", "capacity", "--rate", rate, "--words", "12")
        assert nonsense.exit_code == 2
        assert said in nonsense.output
    with_gpu = command("bench", "capacity", *given, "--gpu-answers-per-s", "1000")
    assert "was not measured" in with_gpu.output


def test_a_busy_machine_behind_the_shipped_costs_is_told(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    busy = replace(shipped_measurements(), load=10.9, cores=2)
    monkeypatch.setattr("gradewire.cli.bench.capacity.shipped_measurements", lambda: busy)
    done = command("bench", "capacity", "--rate", "10", "--words", "12")
    assert "the machine was busy with other work then (load average 10.9 on 2 cores)" in done.output


def own_file(path: Path, *, repeated: float, cpu_s: float, words: float = 11.0) -> Path:
    """Of two rates that one FILE was sent at."""
    step = {"outcome": "holds", "batch": 1, "answers_repeated_share": repeated}
    steps = [
        step | {"rate_per_s": 50.0 * nearly, "words_mean": words * nearly, "server_cpu_s_per_item": cpu_s * nearly}
        for nearly in (0.99, 1.01)
    ]
    path.write_text(json.dumps({"metrics": {"smile": "smile:v1/1?model=m@0"}, "steps": steps}))
    return path


def test_capacity_from_rows_of_ones_own_new_and_repeated(command: Command, tmp_path: Path) -> None:
    new = own_file(tmp_path / "new.json", repeated=0.0, cpu_s=0.010)
    warm = own_file(tmp_path / "warm.json", repeated=1.0, cpu_s=0.002)
    files, out = ("--from", new, "--from", warm), tmp_path / "capacity.json"
    done = command("bench", "capacity", "--rate", "100", "--words", "11", "--hit-rate", "0.5", *files, "--json", out)
    assert done.exit_code == 0, done.output
    assert json.loads(out.read_text())["needs"]["cpu_s"] == pytest.approx(0.006, rel=0.02)
    assert "was busy" not in done.output
    manifest = read_manifest(tmp_path / "capacity.json.manifest.json")
    assert list(manifest.inputs) == [file_digest(new), file_digest(warm)]
    assert manifest.metrics == {"smile:v1": "smile:v1/1?model=m@0"}
    longer = command("bench", "capacity", "--rate", "100", "--words", "40", *files)
    assert longer.exit_code == 2
    assert "--words 40: the answers that were measured have 11 words" in longer.output
    alone = command("bench", "capacity", "--rate", "100", "--words", "11", "--from", new, "--from", new)
    assert alone.exit_code == 2
    assert "or your own FILE, each also with --repeat-share 1" in alone.output


def test_the_manifest_of_capacity_goes_where_it_is_asked_for(command: Command, tmp_path: Path) -> None:
    given = ("--rate", "10", "--words", "12", "--manifest", tmp_path / "m.json")
    assert command("bench", "capacity", *given).exit_code == 0
    assert read_manifest(tmp_path / "m.json").command == "bench capacity"
    assert [path.name for path in tmp_path.iterdir()] == ["m.json"]
