"""Manifests written and read again."""

import errno
import json
import math
import os
import stat
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import example_count
from tests.support.syncs import Syncs

from gradewire_cli.results.journal import replacing
from gradewire_cli.results.manifest import (
    FORMAT,
    Cost,
    InputDigest,
    Machine,
    ManifestError,
    RunCounts,
    RunManifest,
    RunTimes,
    Versions,
    read_manifest,
    write_manifest,
)

MANIFEST = RunManifest(
    command="score",
    versions=Versions(gradewire="0.1.0", server="0.1.0", protocol="gradewire.v1", python="3.11.7"),
    counts=RunCounts(rows=3, scored_now=2, failed=1, statuses={"smile": {"OK": 2, "TIMEOUT": 1}}),
    times=RunTimes(began_at="2026-11-25T14:00:00+00:00", wall_s=2.0, cpu_s=0.5),
    machine=Machine(processor="a processor", cores=2, memory_bytes=1 << 30, load_before=0.25),
    metrics={"smile": "smile:v1/1?model=m@0123456789ab"},
    models=("m@0123456789ab",),
    inputs=(InputDigest(path="a.jsonl", bytes=7, sha256="0" * 64),),
    output=InputDigest(path="out.jsonl", bytes=9, sha256="1" * 64),
    cost=Cost(read_tokens=10, written_tokens=2, read_price=1.0, written_price=2.0, price=14e-6),
    parameters={"rate": 1.5},
    notes=("a note",),
)
TIMES = {"began_at": "2026-11-25T14:00:00+00:00", "wall_s": 2, "cpu_s": 1}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "out.jsonl.manifest.json"


def changed(path: Path, **fields: Any) -> Path:
    """The file of `MANIFEST` with these fields in place of its own."""
    write_manifest(path, MANIFEST)
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))
    return path


def test_what_is_written_is_read(path: Path) -> None:
    write_manifest(path, MANIFEST)
    assert read_manifest(path) == MANIFEST
    assert json.loads(path.read_text())["format"] == FORMAT
    assert [file.name for file in path.parent.iterdir()] == [path.name]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)


@settings(max_examples=example_count(60))
@given(
    statuses=st.dictionaries(TEXTS, st.dictionaries(TEXTS, st.integers(0, 1 << 40), max_size=3), max_size=3),
    notes=st.lists(TEXTS, max_size=3),
    price=st.none() | st.floats(allow_nan=False, allow_infinity=False),
    results=st.dictionaries(TEXTS, JSON, max_size=3),
)
def test_any_manifest_is_read_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, statuses: Any, notes: list[str], price: float | None, results: Any
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.manifest.json"
    manifest = RunManifest(
        command="bulk",
        versions=Versions(gradewire="1"),
        counts=RunCounts(rows=0, statuses=statuses),
        times=MANIFEST.times,
        machine=MANIFEST.machine,
        cost=Cost(read_tokens=0, written_tokens=0, price=price),
        notes=tuple(notes),
        results=json.loads(json.dumps(results)),
    )
    write_manifest(path, manifest)
    assert read_manifest(path) == manifest


def test_fields_of_a_newer_version_are_kept(path: Path) -> None:
    read = read_manifest(changed(path, weather={"wind": "north"}))
    assert read.others == {"weather": {"wind": "north"}}
    write_manifest(path, read)
    assert json.loads(path.read_text())["weather"] == {"wind": "north"}


def test_a_whole_number_does_where_a_number_has_to_be(path: Path) -> None:
    assert read_manifest(changed(path, times=TIMES)).times.wall_s == 2.0


def test_a_manifest_of_a_version_that_knew_no_output_is_read(path: Path) -> None:
    write_manifest(path, MANIFEST)
    document = json.loads(path.read_text())
    del document["output"]
    path.write_text(json.dumps(document))
    assert read_manifest(path) == replace(MANIFEST, output=None)


def test_figures_that_are_not_defined_are_null(path: Path) -> None:
    changed_result = RunManifest(
        command="bench load",
        versions=MANIFEST.versions,
        counts=MANIFEST.counts,
        times=MANIFEST.times,
        machine=MANIFEST.machine,
        results={"p99_s": math.nan, "steps": [math.inf, 1.0]},
    )
    write_manifest(path, changed_result)
    assert read_manifest(path).results == {"p99_s": None, "steps": [None, 1.0]}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"format": "gradewire-manifest/2"}, "has format gradewire-manifest/2, but this gradewire reads"),
        ({"format": 1}, "is not a gradewire manifest"),
        ({"format": "something/1"}, "is not a gradewire manifest"),
        ({"counts": {}}, "field counts.rows is missing"),
        ({"counts": {"rows": "many"}}, "counts.rows must be a whole number, not a string"),
        ({"counts": {"rows": True}}, "counts.rows must be a whole number, not true or false"),
        (
            {"counts": {"rows": 1, "statuses": {"smile": [1]}}},
            "counts.statuses.smile must be an object, not a list",
        ),
        ({"inputs": [{"path": "a"}, {}]}, "field inputs[1].path is missing"),
        ({"notes": "one"}, "notes must be a list, not a string"),
        ({"times": None}, "times must be an object, not null"),
        ({"times": TIMES | {"wall_s": True}}, "times.wall_s must be a number, not true or false"),
        ({"cost": {"read_tokens": 1, "written_tokens": 1, "price": False}}, "cost.price must be a number"),
        # Digits enough for no float and few enough for Python's own bound on integers in a text.
        ({"times": TIMES | {"cpu_s": 10**310}}, "times.cpu_s is too large"),
        ({"times": TIMES | {"cpu_s": -(10**4000)}}, "times.cpu_s is too large"),
    ],
)
def test_what_is_no_manifest_is_refused_with_the_field(path: Path, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ManifestError) as refused:
        read_manifest(changed(path, **fields))
    assert message in str(refused.value)
    assert str(path) in str(refused.value)


@pytest.mark.parametrize("text", ["", "[", "[]", "null", "[" * 100_000])
def test_other_files_are_refused(path: Path, text: str) -> None:
    path.write_text(text)
    with pytest.raises(ManifestError, match="is not a gradewire manifest"):
        read_manifest(path)


def test_a_manifest_that_cannot_be_written_leaves_the_old_one(path: Path) -> None:
    write_manifest(path, MANIFEST)
    broken = RunManifest(
        command="score",
        versions=MANIFEST.versions,
        counts=MANIFEST.counts,
        times=MANIFEST.times,
        machine=MANIFEST.machine,
        results={"x": object()},
    )
    with pytest.raises(TypeError):
        write_manifest(path, broken)
    assert read_manifest(path) == MANIFEST
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def replace_file(path: Path, data: bytes) -> None:
    with replacing(path) as unfinished:
        unfinished.write_bytes(data)


POSIX = pytest.mark.skipif(sys.platform == "win32", reason="folders are not synced there")


@POSIX
def test_a_file_is_on_the_disk_before_it_takes_its_name_and_the_name_before_it_is_told(
    tmp_path: Path, syncs: Syncs
) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"old")
    replace_file(path, b"the whole")
    assert path.read_bytes() == b"the whole"
    assert [each.name for each in tmp_path.iterdir()] == ["out"]
    assert syncs.calls == [("out.new", 9, {"out", "out.new"}), (tmp_path.name, None, {"out"})]


@POSIX
@pytest.mark.parametrize("code", [errno.EINVAL, errno.ENOTSUP])
def test_a_file_system_that_syncs_no_folders_is_used_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    fsync = os.fsync

    def refuse(opened: int) -> None:
        if stat.S_ISDIR(os.fstat(opened).st_mode):
            raise OSError(code, os.strerror(code))
        fsync(opened)

    monkeypatch.setattr(os, "fsync", refuse)
    replace_file(tmp_path / "out", b"new")
    assert (tmp_path / "out").read_bytes() == b"new"


@POSIX
def test_a_disk_that_does_not_take_the_name_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fsync = os.fsync

    def fail(opened: int) -> None:
        if stat.S_ISDIR(os.fstat(opened).st_mode):
            raise OSError(errno.EIO, "Input/output error")
        fsync(opened)

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="Input/output error"):
        replace_file(tmp_path / "out", b"new")


def test_a_disk_that_does_not_take_the_file_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    (tmp_path / "out").write_bytes(b"old")
    with pytest.raises(OSError, match="No space left on device"):
        replace_file(tmp_path / "out", b"new")
    assert (tmp_path / "out").read_bytes() == b"old"
