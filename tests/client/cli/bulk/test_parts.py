"""Parts of a bulk run on a disk and on another file system of fsspec."""

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import example_count
from tests.support.syncs import Syncs

from gradewire.cli.bulk.parts import (
    FOLDER_MANIFEST,
    RUN_NAME,
    PartId,
    PartStore,
    check_place,
    is_folder,
    missing_parts,
    parts_place,
)
from gradewire.cli.problems import InputError


@pytest.fixture(params=["disk", "file", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[PartStore]:
    """A folder on this disk, the same by its URL, and one of a file system that is not this machine's."""
    places = {
        "disk": str(tmp_path / "parts"),
        "file": f"file://{tmp_path}/parts",
        "memory": f"memory://{uuid.uuid4()}/parts",
    }
    found = PartStore(places[request.param])
    found.create()
    yield found
    found.remove_all()
    assert not found.names()


def test_a_part_is_there_once_and_an_answered_one_replaces_the_other(store: PartStore) -> None:
    part = PartId(2, 7)
    assert store.parts() == {}
    store.write_part(part, b"first\n", answered=False)
    assert store.parts() == {part: False}
    assert store.read_part(part, answered=False) == b"first\n"
    store.write_part(part, b"second\n", answered=False)
    store.write_part(part, b"third\n", answered=True)
    assert store.parts() == {part: True}
    assert store.names() == {part.name(answered=True)}
    assert store.read_part(part, answered=True) == b"third\n"


def test_an_answered_part_stands_beside_what_a_kill_left(store: PartStore) -> None:
    part = PartId(0, 0)
    # Killed between the writing of the answered part and the removal of the other.
    store.write(part.name(answered=False), b"old")
    store.write(part.name(answered=True), b"new")
    assert store.parts() == {part: True}


def test_a_bucket_stays_where_the_parts_in_it_are_removed() -> None:
    bucket = uuid.uuid4().hex
    for place, stays in ((f"memory://{bucket}", True), (f"memory://{bucket}/parts", False)):
        store = PartStore(place)
        store.create()
        store.write_part(PartId(0, 0), b"row\n", answered=True)
        store.remove_all()
        assert fsspec.filesystem("memory").exists(place) is stays


def test_a_part_is_read_as_it_is_now_not_as_it_was(store: PartStore) -> None:
    part = PartId(0, 0)
    store.write_part(part, b"old", answered=False)
    assert store.read_latest(part) == b"old"
    store.write_part(part, b"new", answered=True)
    assert store.read_latest(part) == b"new"


def test_a_kill_while_parts_are_removed_leaves_what_they_were_made_with(
    store: PartStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.write(RUN_NAME, b"{}")
    store.write(FOLDER_MANIFEST, b"{}")
    for number in range(3):
        store.write_part(PartId(0, number), b"row\n", answered=number == 1)
    removed: list[str] = []
    remove = PartStore.remove

    def killed(self: PartStore, name: str) -> None:
        if len(removed) == 3:
            raise KeyboardInterrupt
        removed.append(name)
        remove(self, name)

    with monkeypatch.context() as patched:
        patched.setattr(PartStore, "remove", killed)
        with pytest.raises(KeyboardInterrupt):
            store.remove_all()
    assert removed[0] == FOLDER_MANIFEST
    assert RUN_NAME in store.names()
    assert store.parts()


def test_workers_are_asked_to_stop_until_that_is_taken_back(store: PartStore) -> None:
    assert not store.is_stopping()
    store.ask_to_stop()
    assert PartStore(store.place).is_stopping()
    assert store.parts() == {}
    store.forget_stop()
    store.forget_stop()
    assert not store.is_stopping()


def test_a_missing_part_is_an_error_that_names_it(store: PartStore) -> None:
    with pytest.raises(InputError, match=r"part-00000-0000003\.done\.jsonl"):
        store.read_part(PartId(0, 3), answered=True)


def test_a_folder_of_parts_is_gone_when_all_are_removed(tmp_path: Path) -> None:
    for place in (str(tmp_path / "one"), f"file://{tmp_path}/two", "memory://gone/parts"):
        store = PartStore(place)
        store.create()
        store.write_part(PartId(0, 0), b"rows", answered=True)
        store.remove_all()
        system, path = fsspec.core.url_to_fs(place)
        assert not system.exists(path)
        store.remove_all()


def test_a_folder_of_something_else_is_refused_and_stays(store: PartStore) -> None:
    store.write("thesis.tex", b"words")
    with pytest.raises(InputError, match=r"has files that no run of bulk wrote \(thesis.tex\)"):
        check_place(store)
    store.write_part(PartId(0, 0), b"", answered=True)
    store.remove_all()
    assert store.names() == {"thesis.tex"}
    store.remove("thesis.tex")


def test_hidden_files_of_others_stay_and_what_a_kill_left_goes(store: PartStore) -> None:
    left = f".{PartId(0, 0).name(answered=True)}.{uuid.uuid4().hex}.new"
    for name in (".env", left, ".draft.new"):
        store.write(name, b"words")
    check_place(store)
    store.remove_all()
    assert store.names() == {".env", ".draft.new"}
    for name in store.names():
        store.remove(name)


def test_a_part_that_cannot_be_written_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = PartStore(str(tmp_path))

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(InputError, match="No space left on device"):
        store.write_part(PartId(0, 0), b"rows", answered=True)
    assert store.names() == set()


@settings(max_examples=example_count(100))
@given(
    files=st.lists(st.integers(0, 12), max_size=4),
    removed=st.sets(st.tuples(st.integers(0, 3), st.integers(0, 11)), max_size=5),
)
def test_missing_parts_are_those_that_are_not_there(files: list[int], removed: set[tuple[int, int]]) -> None:
    everything = {PartId(file, number) for file, parts in enumerate(files) for number in range(parts)}
    there = {part: True for part in everything if part not in removed}
    assert set(missing_parts(there, dict(enumerate(files)))) == everything - there.keys()


@settings(max_examples=example_count(100))
@given(file=st.integers(0, 99_999), number=st.integers(0, 9_999_998), answered=st.booleans())
def test_names_sort_as_parts_do_and_are_read_again(file: int, number: int, *, answered: bool) -> None:
    store = fsspec.filesystem("memory")
    store.pipe_file(f"/names/{(name := PartId(file, number).name(answered=answered))}", b"")
    assert PartStore("memory://names").parts() == {PartId(file, number): answered}
    store.rm("/names", recursive=True)
    assert name < PartId(file, number + 1).name(answered=answered)


@pytest.mark.parametrize(
    ("output", "place", "folder"),
    [
        ("a/scores.jsonl", "a/scores.jsonl.parts", False),
        ("a/scores/", "a/scores", True),
        ("s3://bucket/scores.parquet", "s3://bucket/scores.parquet.parts", False),
        ("s3://bucket/scores/", "s3://bucket/scores", True),
    ],
)
def test_parts_stand_beside_a_file_and_in_a_folder(output: str, place: str, *, folder: bool) -> None:
    assert (parts_place(output), is_folder(output)) == (place, folder)


def test_two_runs_do_not_write_into_one_folder(tmp_path: Path) -> None:
    store = PartStore(str(tmp_path / "parts"))
    with store.held():
        with (
            pytest.raises(
                InputError, match=rf"parts: another run writes there \(process {os.getpid()} on .*\): wait for its end"
            ),
            store.held(),
        ):
            pass
        store.write_part(PartId(0, 0), b"row\n", answered=True)
        store.empty()
        with pytest.raises(InputError, match="another run writes there"), PartStore(f"file://{tmp_path}/parts").held():
            pass
    with store.held():
        assert store.names() == set()


def test_the_lock_of_a_folder_that_was_removed_keeps_nobody_out_and_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = PartStore(str(tmp_path / "parts"))
    begun = os.open
    removed: list[str] = []

    def opened(path: Path, flags: int, mode: int = 0o777) -> int:
        # The run before ends between the opening of its folder and the lock.
        found = begun(path, flags, mode)
        if not removed:
            removed.append(str(path))
            store.remove_all()
        return found

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", opened)
        with store.held():
            assert removed
            store.write_part(PartId(0, 0), b"row\n", answered=True)
            with pytest.raises(InputError, match="another run writes there"), PartStore(store.place).held():
                pass


def test_a_folder_that_a_run_ends_before_it_is_opened_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = PartStore(str(tmp_path / "parts"))
    create = PartStore.create
    made: list[str] = []

    def created(self: PartStore) -> None:
        create(self)
        made.append(self.place)
        if len(made) == 1:
            store.remove_all()

    with monkeypatch.context() as patched:
        patched.setattr(PartStore, "create", created)
        with store.held():
            store.write_part(PartId(0, 0), b"row\n", answered=True)
    assert store.parts() == {PartId(0, 0): True}


def test_a_folder_is_gone_where_nothing_was_written_and_stays_where_it_was(tmp_path: Path) -> None:
    store = PartStore(str(tmp_path / "parts"))
    with pytest.raises(InputError, match="no"), store.held():
        raise InputError("no")
    assert not Path(store.place).exists()
    store.create()
    with store.held():
        pass
    assert Path(store.place).exists()


def test_a_part_outlasts_a_power_cut_before_the_one_that_it_replaces_goes(tmp_path: Path, syncs: Syncs) -> None:
    store = PartStore(str(tmp_path))
    store.write_part(PartId(0, 0), b"old\n", answered=False)
    syncs.calls.clear()
    store.write_part(PartId(0, 0), b"answered\n", answered=True)
    syncs.assert_lasts(tmp_path / PartId(0, 0).name(answered=True))
    assert PartId(0, 0).name(answered=False) in syncs.calls[-1][2]


def test_a_file_system_that_shows_what_is_being_written_sees_whole_parts_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    store = PartStore(f"memory://{uuid.uuid4()}/parts")
    store.create()
    store.write_part(PartId(0, 0), b"first", answered=True)
    system = fsspec.filesystem("memory")
    written: list[str] = []
    pipe_file = type(system).pipe_file

    def broken(self: fsspec.AbstractFileSystem, path: str, value: bytes, **_: object) -> None:
        written.append(path.rsplit("/", 1)[-1])
        pipe_file(self, path, value[:2])
        raise OSError("the connection is gone")

    monkeypatch.setattr(type(system), "pipe_file", broken)
    with pytest.raises(InputError, match="the connection is gone"):
        store.write_part(PartId(0, 0), b"second", answered=True)
    assert not written[0].startswith("part-")
    assert store.read_part(PartId(0, 0), answered=True) == b"first"
    assert store.names() == {PartId(0, 0).name(answered=True)}
