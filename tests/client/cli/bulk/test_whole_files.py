"""Parts on file systems of fsspec that move files in other ways than a disk, where a kill or a fault comes between."""

import uuid
from collections.abc import Callable, Iterator

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from gradewire.cli.bulk.parts import PartId, PartStore
from gradewire.cli.problems import InputError

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
def store() -> Iterator[PartStore]:
    """A folder in memory."""
    found = PartStore(f"memory://{uuid.uuid4()}/parts")
    found.create()
    yield found
    fsspec.filesystem("memory").rm(found.place, recursive=True)


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
def test_a_part_is_replaced_by_every_kind_of_move(store: PartStore, moving: Callable[[Move], None], move: Move) -> None:
    moving(move)
    for data in (b"first\n", b"second\n", b"second\n", b""):
        store.write_part(PART, data, answered=False)
        assert store.read_part(PART, answered=False) == data
        assert store.names() == {NAME}


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("moves_before", [0, 1, 2])
def test_a_kill_while_a_part_is_replaced_leaves_the_old_one_or_the_new_one(
    store: PartStore, monkeypatch: pytest.MonkeyPatch, move: Move, moves_before: int
) -> None:
    store.write_part(PART, b"old and paid for\n", answered=False)
    with monkeypatch.context() as patched:
        killed_at(moves_before, move, patched)
        try:
            store.write_part(PART, b"new\n", answered=False)
        except KilledError:
            expected = b"old and paid for\n"
        else:
            expected = b"new\n"
    with store.held():
        assert store.parts() == {PART: False}
        assert store.read_part(PART, answered=False) == expected
    store.empty()
    assert store.names() == set()


@pytest.mark.parametrize("move", [refuses, fails])
def test_the_moment_without_a_part_is_there_and_is_made_up_for(
    store: PartStore, monkeypatch: pytest.MonkeyPatch, move: Move
) -> None:
    store.write_part(PART, b"old\n", answered=False)
    with monkeypatch.context() as patched:
        # Of three moves the first is refused, the second takes the old part aside.
        killed_at(2, move, patched)
        with pytest.raises(KilledError):
            store.write_part(PART, b"new\n", answered=False)
    assert store.parts() == {}
    with store.held():
        assert store.read_part(PART, answered=False) == b"old\n"


@pytest.mark.parametrize("error", [OSError("the connection is gone"), LookupError("550 no right to rename")])
def test_a_move_that_fails_for_another_reason_leaves_the_old_part(
    store: PartStore, moving: Callable[[Move], None], error: Exception
) -> None:
    store.write_part(PART, b"old\n", answered=False)

    def broken(*_: object) -> None:
        raise error

    moving(broken)
    with pytest.raises(InputError, match=str(error)):
        store.write_part(PART, b"new\n", answered=False)
    assert store.read_part(PART, answered=False) == b"old\n"
    assert store.names() == {NAME}
    with pytest.raises(InputError, match=str(error)):
        store.write_part(PartId(0, 1), b"new\n", answered=True)
    assert store.names() == {NAME}


def test_a_move_that_fails_once_the_old_part_is_aside_gives_it_back(
    store: PartStore, moving: Callable[[Move], None]
) -> None:
    store.write_part(PART, b"old\n", answered=False)

    def broken(system: MemoryFileSystem, one: str, other: str) -> None:
        if one.endswith(".new") and not system.exists(other):
            raise OSError("the quota is used up")
        refuses(system, one, other)

    moving(broken)
    with pytest.raises(InputError, match="the quota is used up"):
        store.write_part(PART, b"new\n", answered=False)
    assert store.read_part(PART, answered=False) == b"old\n"
    assert store.names() == {NAME}


@pytest.mark.parametrize("move", [refuses, fails, does_nothing])
def test_the_same_part_of_another_worker_is_as_good(
    store: PartStore, moving: Callable[[Move], None], move: Move
) -> None:
    def faster(system: MemoryFileSystem, one: str, other: str) -> None:
        system.pipe_file(other, b"row\n")
        move(system, one, other)

    moving(faster)
    store.write_part(PART, b"row\n", answered=True)
    assert store.read_part(PART, answered=True) == b"row\n"
    assert store.names() == {PART.name(answered=True)}


@pytest.mark.parametrize("move", [refuses, fails, does_nothing])
def test_a_worker_that_is_faster_while_an_old_part_is_aside_is_as_good(
    store: PartStore, moving: Callable[[Move], None], move: Move
) -> None:
    store.write_part(PART, b"old\n", answered=False)

    def faster(system: MemoryFileSystem, one: str, other: str) -> None:
        move(system, one, other)
        if other.endswith(".old"):
            system.pipe_file(one, b"of the other\n")

    moving(faster)
    store.write_part(PART, b"new\n", answered=False)
    assert store.read_part(PART, answered=False) == b"of the other\n"
    assert store.names() == {NAME}


def test_a_copy_that_breaks_off_is_not_taken_for_a_part(store: PartStore, moving: Callable[[Move], None]) -> None:
    def broken(system: MemoryFileSystem, one: str, other: str) -> None:
        system.pipe_file(other, system.cat_file(one)[:2])
        raise OSError("the connection is gone")

    moving(broken)
    with pytest.raises(InputError, match="the connection is gone"):
        store.write_part(PART, b"row\n", answered=True)
    assert store.parts() == {}
    assert store.names() == set()
