"""A run of bulk, without Ray: what it looks at before it writes, and what it says."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import fsspec
import pytest
from tests.cli.bulk.conftest import PART_ROWS, Bulk, answers

from gradewire_cli.bulk import command as job_module
from gradewire_cli.bulk.command import BulkJob
from gradewire_cli.bulk.options import BulkOutput
from gradewire_cli.bulk.output import input_digests, save_run
from gradewire_cli.bulk.parts import RUN_NAME, PartId, PartStore
from gradewire_cli.options.judge import JudgePrices
from gradewire_cli.options.metrics import MetricOptions
from gradewire_cli.problems import InputError
from gradewire_cli.results.manifest import RunCounts
from gradewire_cli.results.manifest_entries import output_digest, reading_parameters

Make = Callable[..., Bulk]
OTHER = b'{"metrics": "of another run"}'


@pytest.fixture(autouse=True)
def without_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here gets as far as Ray."""

    def refuse(*_: Any) -> None:
        raise AssertionError("it began to score")

    monkeypatch.setattr(job_module, "import_ray", lambda: None)
    monkeypatch.setattr(BulkJob, "_score", refuse)


def job_of(run: Bulk, output: str, *, resume: bool = False, overwrite: bool = False) -> BulkJob:
    """A job over the rows of a run, with what its server says."""
    options = {"resume": resume, "overwrite": overwrite, "summary_json": None, "manifest": None}
    job = BulkJob(
        source=run.source,
        metrics=MetricOptions(metrics="smile"),
        connection=run.connection,
        output=BulkOutput(output, {**options, "part_rows": PART_ROWS}),
        prices=JudgePrices(),
        quiet=True,
    )
    job.plan, job.lines, job.server_version = run.plan, run.lines, ""
    return job


def meanwhile(monkeypatch: pytest.MonkeyPatch, other: Callable[[], object]) -> None:
    """Another run does this while ours reads its input, after the first look at what is there."""
    digests = input_digests

    def read(source: Any) -> Any:
        other()
        return digests(source)

    monkeypatch.setattr(job_module, "input_digests", read)


@pytest.mark.parametrize("name", ["out.jsonl", "out/"])
def test_parts_that_another_run_has_left_meanwhile_are_not_taken_over(
    bulk: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    job = job_of(bulk(answers(PART_ROWS)), f"{tmp_path}/{name}")
    store = job.output.store

    def other() -> None:
        store.create()
        store.write(RUN_NAME, OTHER)
        store.write_part(PartId(0, 0), b"row\n", answered=True)

    job._check_output()
    meanwhile(monkeypatch, other)
    with pytest.raises(InputError, match=r"exists. Use --resume to continue it, or --overwrite"):
        job.run()
    assert store.read(RUN_NAME) == OTHER
    assert store.parts() == {PartId(0, 0): True}


@pytest.mark.parametrize(("resume", "message"), [(False, "exists. Use --resume"), (True, "may be from another run")])
def test_an_output_that_another_run_has_finished_meanwhile_is_not_replaced(
    bulk: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, message: str, *, resume: bool
) -> None:
    out = tmp_path / "out.jsonl"
    job = job_of(bulk(answers(PART_ROWS)), str(out), resume=resume)
    job.output.store.remove_all()
    job._check_output()
    meanwhile(monkeypatch, lambda: out.write_bytes(b"whole\n"))
    with pytest.raises(InputError, match=message):
        job.run()
    assert out.read_bytes() == b"whole\n"
    assert not (tmp_path / "out.jsonl.parts").exists()


def test_a_finished_output_is_not_scored_again(bulk: Make, tmp_path: Path) -> None:
    out, run = tmp_path / "out.jsonl", bulk(answers(PART_ROWS))
    job = job_of(run, str(out), resume=True)
    job.output.store.remove_all()
    out.write_bytes(b"whole\n")
    folder, name = job.output.manifest_path
    described = job._described(input_digests(run.source), RunCounts(rows=4, failed=1, unscored=2))
    save_run(folder, replace(described, output=output_digest(out)), name)
    before = folder.read(name)
    job.run()
    assert (job.summary.failed_rows, job.summary.unscored_rows) == (1, 2)
    assert (out.read_bytes(), folder.read(name)) == (b"whole\n", before)
    assert not (tmp_path / "out.jsonl.parts").exists()

    out.write_bytes(b"changed\n")
    with pytest.raises(InputError, match=r"out.jsonl has changed since out.jsonl.manifest.json was written"):
        job.run()
    save_run(folder, replace(described, metrics={"bleu": "bleu/1"}), name)
    with pytest.raises(InputError, match=r"out.jsonl was made with other settings: --metrics were bleu, now smile"):
        job.run()


@pytest.fixture
def secret() -> Any:
    """A place whose URL has a password, and what it is shown as."""
    yield "memory://user:SECRET@SECRET@place", "memory://…@place"
    memory = fsspec.filesystem("memory")
    for path in memory.ls("/", detail=False):
        if "SECRET" in path:
            memory.rm(path, recursive=True)


def test_what_a_run_says_of_its_places_has_no_password(
    bulk: Make, secret: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    url, shown = secret
    run = bulk(answers(PART_ROWS))
    job = job_of(run, f"{url}/out.jsonl")
    store = job.output.store
    store.create()
    store.write_part(PartId(0, 0), b"row\n", answered=False)
    with pytest.raises(InputError) as there:
        job._check_output()
    assert str(there.value).startswith(f"{shown}/out.jsonl.parts exists")
    resumed = job_of(run, f"{url}/out.jsonl", resume=True)
    with pytest.raises(InputError) as nameless:
        resumed.run()
    assert f"{shown}/out.jsonl.parts contains parts, but the description of" in str(nameless.value)
    described = job._described([], RunCounts(rows=0))
    save_run(store, replace(described, parameters={**reading_parameters(run.source), "part_rows": 1}))
    with pytest.raises(InputError) as differing:
        resumed.run()
    assert f"--resume: {shown}/out.jsonl.parts was made with other settings" in str(differing.value)
    assert job.resume_hint() == f"1 parts are in {shown}/out.jsonl.parts. Continue with --resume"
    assert f"{shown}/out.jsonl" in job._reproduce()
    for told in (there, nameless, differing):
        assert "SECRET" not in str(told.value)
    assert "SECRET" not in job._reproduce() + "".join(capsys.readouterr())


def test_what_a_run_says_at_its_end_has_no_password(
    bulk: Make, secret: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    url, shown = secret
    run = bulk(answers(PART_ROWS))
    run.store = PartStore(f"{url}/out.jsonl.parts")
    run.store.create()
    job = job_of(run, f"{url}/out.jsonl")
    run.run()
    (part,) = run.store.parts()
    run.store.write_part(part, run.store.read_part(part, answered=True), answered=False)
    run.store.remove(part.name(answered=True))
    job._end([], run.ends)
    told = "".join(capsys.readouterr())
    assert f"{shown}/out.jsonl.parts contains unanswered rows" in told
    assert "SECRET" not in told
    manifest = PartStore(url).read("out.jsonl.manifest.json").decode()
    assert json.loads(manifest)["command"] == "bulk"
    assert "SECRET" not in manifest
