"""A file that is cut short under a running process is built anew, and never read."""

import errno
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gradewire_server.storage.lmdb import watched
from gradewire_server.storage.lmdb.directory import StoreDirectory
from gradewire_server.storage.lmdb.watched import TruncatedError, WatchedEnvironment

_MIB = 1 << 20


def opened(directory: StoreDirectory, *, durable: bool = False) -> WatchedEnvironment:
    return WatchedEnvironment(directory, directory.path / "part", max_bytes=_MIB, durable=durable, alone=False)


def fill(environment: WatchedEnvironment, count: int = 100) -> None:
    with environment.on_writer(write=True) as transaction:
        for number in range(count):
            transaction.put(b"%d" % number, b"x" * 1000)


@pytest.mark.parametrize("left_bytes", [0, 100, 4096, 8192, 50_000])
def test_a_shrunk_file_is_never_read_and_starts_anew(tmp_path: Path, left_bytes: int) -> None:
    directory = StoreDirectory(tmp_path)
    environment = opened(directory)
    fill(environment)
    os.truncate(environment.path / "data.mdb", left_bytes)
    with pytest.raises(TruncatedError), environment.reading() as transaction:
        pytest.fail(f"it was read: {transaction}")
    with pytest.raises(TruncatedError), environment.on_writer(write=True) as transaction:
        pytest.fail(f"it was written: {transaction}")
    environment.rebuild()
    with environment.reading() as transaction:
        assert transaction.get(b"1") is None
    fill(environment)
    with environment.reading() as transaction:
        assert transaction.get(b"1") == b"x" * 1000
    environment.close(suspect=False)
    directory.close()


def test_a_file_that_grows_stays(tmp_path: Path) -> None:
    directory = StoreDirectory(tmp_path)
    environment = opened(directory)
    for count in (1, 50, 400):
        fill(environment, count)
        environment.rebuild()  # nothing is wrong with it, so nothing happens
        with environment.reading() as transaction:
            assert transaction.get(b"%d" % (count - 1)) == b"x" * 1000
    environment.close(suspect=False)
    directory.close()


def test_what_is_meant_to_last_is_set_aside(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    directory = StoreDirectory(tmp_path)
    environment = opened(directory, durable=True)
    fill(environment)
    os.truncate(environment.path / "data.mdb", 4096)
    with caplog.at_level(logging.WARNING):
        environment.rebuild()
        environment.rebuild()
    assert len(caplog.records) == 1
    assert [path.name.partition("-")[0] for path in directory.path.glob("part.*")] == ["part.damaged"]
    environment.close(suspect=False)
    directory.close()


def test_a_durable_file_that_was_deleted_is_made_anew(tmp_path: Path) -> None:
    directory = StoreDirectory(tmp_path)
    environment = opened(directory, durable=True)
    fill(environment)
    (environment.path / "data.mdb").unlink()
    with pytest.raises(TruncatedError), environment.on_writer(write=True) as transaction:
        pytest.fail(f"it was written: {transaction}")
    environment.rebuild()
    fill(environment)
    environment.close(suspect=False)
    environment = opened(directory)
    with environment.reading() as transaction:
        assert transaction.get(b"1") == b"x" * 1000
    environment.close(suspect=False)
    directory.close()


def test_a_rebuild_that_fails_leaves_nothing_open_and_is_made_up_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = StoreDirectory(tmp_path)
    environment = opened(directory)
    fill(environment)
    os.truncate(environment.path / "data.mdb", 4096)

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "no space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(watched, "open_environment", full)
        with pytest.raises(OSError, match="no space"):
            environment.rebuild()
        with pytest.raises(OSError, match="no space"):
            environment.rebuild()
    with (tmp_path / "other").open("w") as taken:  # has the number of what was closed
        with pytest.raises(TruncatedError), environment.reading():
            pass
        environment.rebuild()
        os.fstat(taken.fileno())
    with environment.on_writer(write=True) as transaction:
        transaction.put(b"new", b"value")
    with environment.reading() as transaction:
        assert transaction.get(b"new") == b"value"
    environment.close(suspect=False)
    directory.close()


_OTHER = """
import sys
from pathlib import Path
from tests.server.storage.lmdb.test_watched import opened
from gradewire_server.storage.lmdb.directory import StoreDirectory
directory = StoreDirectory(Path(sys.argv[1]))
environment = opened(directory)
print("open", flush=True)
sys.stdin.readline()
environment.rebuild()
with environment.reading() as transaction:
    print((transaction.get(b"new") or b"").decode(), flush=True)
"""


def test_a_second_process_takes_what_the_first_has_made_anew(tmp_path: Path) -> None:
    directory = StoreDirectory(tmp_path)
    environment = opened(directory)
    fill(environment)
    directory.share()
    with subprocess.Popen(
        [sys.executable, "-c", _OTHER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        assert other.stdout.readline() == "open\n"
        os.truncate(environment.path / "data.mdb", 4096)
        environment.rebuild()
        with environment.on_writer(write=True) as transaction:
            transaction.put(b"new", b"made by the first")
        other.stdin.write("\n")
        other.stdin.flush()
        assert other.stdout.readline() == "made by the first\n"
    assert other.returncode == 0
    environment.close(suspect=False)
    directory.close()
