"""What a manifest says of files, versions, models, and the machine."""

import importlib.metadata
import os
from pathlib import Path

from gradewire_cli.results.manifest import InputDigest
from gradewire_cli.results.manifest_entries import RunClock, file_digest, manifest_path, pinned_names, versions


def test_a_file_has_its_size_and_sha256(tmp_path: Path) -> None:
    (tmp_path / "abc").write_bytes(b"abc")
    found = file_digest(tmp_path / "abc")
    # FIPS 180-2, appendix B.1.
    assert found.sha256 == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert (found.bytes, found.path) == (3, str(tmp_path / "abc"))


def test_what_may_be_read_once_is_only_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert file_digest(tmp_path / "pipe") == InputDigest(path=str(tmp_path / "pipe"))
    assert file_digest("-") == InputDigest(path="-")


def test_a_manifest_stands_beside_its_output_or_in_its_folder(tmp_path: Path) -> None:
    assert manifest_path(Path("runs/a.jsonl")) == Path("runs/a.jsonl.manifest.json")
    assert manifest_path(tmp_path) == tmp_path / "manifest.json"


def test_models_and_prompts_are_those_with_a_digest() -> None:
    lines = [
        "smile:v1/1?model=all-MiniLM-L6-v2@925549fa50e8&sentence_weight=0.3",
        "lave:v1/3?mode=rating&model=a%20judge@65a474974b48&prompt=lave/2@9f76b4d64d8e",
        "cider/1?corpus=prepared&reference_set=mine@01234567",
        "smile/1?model=all-MiniLM-L6-v2@925549fa50e8",
        "exact_match/1",
    ]
    assert pinned_names(lines) == (
        ["all-MiniLM-L6-v2@925549fa50e8", "a judge@65a474974b48"],
        ["lave/2@9f76b4d64d8e"],
    )


def test_versions_and_machine_are_those_here() -> None:
    clock = RunClock()
    sum(range(1_000_000))
    told, machine, times = versions("9.9"), clock.machine(), clock.times()
    assert (told.gradewire, told.server, told.protocol) == (
        importlib.metadata.version("gradewire"),
        "9.9",
        "gradewire.v1",
    )
    assert machine.cores == len(os.sched_getaffinity(0))
    assert machine.processor
    assert machine.memory_bytes is not None
    assert machine.memory_bytes > 1 << 20
    assert times.began_at.endswith("+00:00")
    assert times.wall_s > 0
