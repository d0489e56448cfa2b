"""Parts of a bulk run on a disk and on another file system of fsspec."""

import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import example_count
from tests.support.syncs import Syncs

from gradewire_cli.bulk.parts import (
    FOLDER_MANIFEST,
    RUN_NAME,
    PartId,
    PartStore,
    check_parts_folder,
    is_folder,
    missing_parts,
    parts_folder,
)
from gradewire_cli.problems import InputError


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
    store.request_stop()
    assert PartStore(store.path_or_url).is_stopping()
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
    with pytest.raises(InputError, match=r"has files that bulk did not write \(thesis.tex\)"):
        check_parts_folder(store)
    store.write_part(PartId(0, 0), b"", answered=True)
    store.remove_all()
    assert store.names() == {"thesis.tex"}
    store.remove("thesis.tex")


def test_hidden_files_of_others_stay_and_what_a_kill_left_goes(store: PartStore) -> None:
    left = f".{PartId(0, 0).name(answered=True)}.{uuid.uuid4().hex}.new"
    for name in (".env", left, ".draft.new"):
        store.write(name, b"words")
    check_parts_folder(store)
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
    assert (parts_folder(output), is_folder(output)) == (place, folder)


def test_two_runs_do_not_write_into_one_folder(tmp_path: Path) -> None:
    store = PartStore(str(tmp_path / "parts"))
    with store.held():
        with (
            pytest.raises(
                InputError,
                match=rf"another run is writing to .*parts \(process {os.getpid()} on .*\)\. Wait until that run ends",
            ),
            store.held(),
        ):
            pass
        store.write_part(PartId(0, 0), b"row\n", answered=True)
        store.empty()
        with (
            pytest.raises(InputError, match="another run is writing to"),
            PartStore(f"file://{tmp_path}/parts").held(),
        ):
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
            with (
                pytest.raises(InputError, match="another run is writing to"),
                PartStore(store.path_or_url).held(),
            ):
                pass


def test_a_folder_that_a_run_ends_before_it_is_opened_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = PartStore(str(tmp_path / "parts"))
    create = PartStore.create
    made: list[str] = []

    def created(self: PartStore) -> None:
        create(self)
        made.append(self.path_or_url)
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
    assert not Path(store.path_or_url).exists()
    store.create()
    with store.held():
        pass
    assert Path(store.path_or_url).exists()


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


PART = PartId(0, 0)
NAME = PART.name(answered=False)
Move = Callable[[MemoryFileSystem, str, str], None]


class KilledError(BaseException):
    """The process is gone: nothing that comes after is done."""


def renames_onto(system: MemoryFileSystem, one: str, other: str) -> None:
    """As SFTP."""
    if not system.exists(one):
        raise FileNotFoundError(one)
    system.store[other] = system.store.pop(one)


def refuses(system: MemoryFileSystem, one: str, other: str) -> None:
    """As SMB."""
    if system.exists(other):
        raise FileExistsError(other)
    renames_onto(system, one, other)


def fails(system: MemoryFileSystem, one: str, other: str) -> None:
    """As FTP, whose errors are none of the operating system's."""
    if system.exists(other):
        raise LookupError("550 failure")
    renames_onto(system, one, other)


def does_nothing(system: MemoryFileSystem, one: str, other: str) -> None:
    """As WebHDFS."""
    if not system.exists(other):
        renames_onto(system, one, other)


def copies(system: MemoryFileSystem, one: str, other: str) -> None:
    """As fsspec where a file system has no move of its own."""
    system.copy(one, other, on_error="raise")
    system.rm(one)


MOVES = (renames_onto, refuses, fails, does_nothing, copies)


@pytest.fixture
def store_whole_files() -> Iterator[PartStore]:
    """A folder in memory."""
    found = PartStore(f"memory://{uuid.uuid4()}/parts")
    found.create()
    yield found
    fsspec.filesystem("memory").rm(found.path_or_url, recursive=True)


@pytest.fixture
def moving(monkeypatch: pytest.MonkeyPatch) -> Callable[[Move], None]:
    """Has files moved so."""
    return lambda move: monkeypatch.setattr(MemoryFileSystem, "mv", move, raising=False)


def killed_at(place: int, move: Move, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Kills the process at its move of this number, from 0; gives the moves that were made."""
    moves: list[str] = []

    def counted(system: MemoryFileSystem, one: str, other: str) -> None:
        if len(moves) >= place:
            # What is done as the error passes is not done by a process that is gone.
            for name in ("rm_file", "mv"):
                monkeypatch.setattr(MemoryFileSystem, name, _gone)
            raise KilledError
        moves.append(other)
        move(system, one, other)

    monkeypatch.setattr(MemoryFileSystem, "mv", counted, raising=False)
    return moves


def _gone(*_: object) -> None:
    raise KilledError


@pytest.mark.parametrize("move", MOVES)
def test_a_part_is_replaced_by_every_kind_of_move(
    store_whole_files: PartStore, moving: Callable[[Move], None], move: Move
) -> None:
    moving(move)
    for data in (b"first\n", b"second\n", b"second\n", b""):
        store_whole_files.write_part(PART, data, answered=False)
        assert store_whole_files.read_part(PART, answered=False) == data
        assert store_whole_files.names() == {NAME}


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("moves_before", [0, 1, 2])
def test_a_kill_while_a_part_is_replaced_leaves_the_old_one_or_the_new_one(
    store_whole_files: PartStore, monkeypatch: pytest.MonkeyPatch, move: Move, moves_before: int
) -> None:
    store_whole_files.write_part(PART, b"old and paid for\n", answered=False)
    with monkeypatch.context() as patched:
        killed_at(moves_before, move, patched)
        try:
            store_whole_files.write_part(PART, b"new\n", answered=False)
        except KilledError:
            expected = b"old and paid for\n"
        else:
            expected = b"new\n"
    with store_whole_files.held():
        assert store_whole_files.parts() == {PART: False}
        assert store_whole_files.read_part(PART, answered=False) == expected
    store_whole_files.empty()
    assert store_whole_files.names() == set()


@pytest.mark.parametrize("move", [refuses, fails])
def test_the_moment_without_a_part_is_there_and_is_made_up_for(
    store_whole_files: PartStore, monkeypatch: pytest.MonkeyPatch, move: Move
) -> None:
    store_whole_files.write_part(PART, b"old\n", answered=False)
    with monkeypatch.context() as patched:
        # Of three moves the first is refused, the second takes the old part aside.
        killed_at(2, move, patched)
        with pytest.raises(KilledError):
            store_whole_files.write_part(PART, b"new\n", answered=False)
    assert store_whole_files.parts() == {}
    with store_whole_files.held():
        assert store_whole_files.read_part(PART, answered=False) == b"old\n"


@pytest.mark.parametrize("error", [OSError("the connection is gone"), LookupError("550 no right to rename")])
def test_a_move_that_fails_for_another_reason_leaves_the_old_part(
    store_whole_files: PartStore, moving: Callable[[Move], None], error: Exception
) -> None:
    store_whole_files.write_part(PART, b"old\n", answered=False)

    def broken(*_: object) -> None:
        raise error

    moving(broken)
    with pytest.raises(InputError, match=str(error)):
        store_whole_files.write_part(PART, b"new\n", answered=False)
    assert store_whole_files.read_part(PART, answered=False) == b"old\n"
    assert store_whole_files.names() == {NAME}
    with pytest.raises(InputError, match=str(error)):
        store_whole_files.write_part(PartId(0, 1), b"new\n", answered=True)
    assert store_whole_files.names() == {NAME}


def test_a_move_that_fails_once_the_old_part_is_aside_gives_it_back(
    store_whole_files: PartStore, moving: Callable[[Move], None]
) -> None:
    store_whole_files.write_part(PART, b"old\n", answered=False)

    def broken(system: MemoryFileSystem, one: str, other: str) -> None:
        if one.endswith(".new") and not system.exists(other):
            raise OSError("the quota is used up")
        refuses(system, one, other)

    moving(broken)
    with pytest.raises(InputError, match="the quota is used up"):
        store_whole_files.write_part(PART, b"new\n", answered=False)
    assert store_whole_files.read_part(PART, answered=False) == b"old\n"
    assert store_whole_files.names() == {NAME}


@pytest.mark.parametrize("move", [refuses, fails, does_nothing])
def test_the_same_part_of_another_worker_is_as_good(
    store_whole_files: PartStore, moving: Callable[[Move], None], move: Move
) -> None:
    def faster(system: MemoryFileSystem, one: str, other: str) -> None:
        system.pipe_file(other, b"row\n")
        move(system, one, other)

    moving(faster)
    store_whole_files.write_part(PART, b"row\n", answered=True)
    assert store_whole_files.read_part(PART, answered=True) == b"row\n"
    assert store_whole_files.names() == {PART.name(answered=True)}


@pytest.mark.parametrize("move", [refuses, fails, does_nothing])
def test_a_worker_that_is_faster_while_an_old_part_is_aside_is_as_good(
    store_whole_files: PartStore, moving: Callable[[Move], None], move: Move
) -> None:
    store_whole_files.write_part(PART, b"old\n", answered=False)

    def faster(system: MemoryFileSystem, one: str, other: str) -> None:
        move(system, one, other)
        if other.endswith(".old"):
            system.pipe_file(one, b"of the other\n")

    moving(faster)
    store_whole_files.write_part(PART, b"new\n", answered=False)
    assert store_whole_files.read_part(PART, answered=False) == b"of the other\n"
    assert store_whole_files.names() == {NAME}


def test_a_copy_that_breaks_off_is_not_taken_for_a_part(
    store_whole_files: PartStore, moving: Callable[[Move], None]
) -> None:
    def broken(system: MemoryFileSystem, one: str, other: str) -> None:
        system.pipe_file(other, system.cat_file(one)[:2])
        raise OSError("the connection is gone")

    moving(broken)
    with pytest.raises(InputError, match="the connection is gone"):
        store_whole_files.write_part(PART, b"row\n", answered=True)
    assert store_whole_files.parts() == {}
    assert store_whole_files.names() == set()
