"""A damaged, foreign or unusable directory is rebuilt or left out: no crash, no wrong vector."""

import errno
import logging
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import lmdb
import pytest
from prometheus_client import CollectorRegistry
from tests.server.conftest import OpenBackends

from gradewire_server.domain.items import Failure
from gradewire_server.domain.needs import AnswerSource, Tier
from gradewire_server.settings.engine import CacheConfig, DiskConfig
from gradewire_server.storage import lmdb_environment
from gradewire_server.storage.lmdb_environment import (
    StoreDirectory,
    TruncatedError,
    WatchedEnvironment,
    mark_clean,
    mark_suspect,
    open_environment,
)

_VALUES = {b"key %06d" % number: os.urandom(788) for number in range(600)}


def make(directory: Path) -> None:
    environment = open_environment(directory, max_bytes=4 << 20, durable=False, alone=True)
    for start in range(0, len(_VALUES), 50):
        with environment.begin(write=True) as transaction:
            for key in list(_VALUES)[start : start + 50]:
                transaction.put(key, _VALUES[key])
    environment.close()
    mark_clean(directory)


def readable(directory: Path) -> int:
    """Opens it again and reads every value, as a server would; those that are there must be whole."""
    environment = open_environment(directory, max_bytes=4 << 20, durable=False, alone=True)
    with environment.begin(write=True) as transaction:
        found = [key for key in _VALUES if transaction.get(key) is not None]
        transaction.put(b"new", b"value")
    environment.close()
    return len(found)


@pytest.fixture
def made(tmp_path: Path) -> Path:
    make(tmp_path / "env")
    return tmp_path / "env"


def test_an_untouched_one_is_kept(made: Path) -> None:
    assert readable(made) == len(_VALUES)


def test_one_that_was_not_closed_is_verified_and_kept(made: Path) -> None:
    mark_suspect(made)
    assert readable(made) == len(_VALUES)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: data.write_bytes(b""),
        lambda data: data.write_bytes(bytes(data.stat().st_size)),
        lambda data: data.write_bytes(random.Random(1).randbytes(data.stat().st_size)),  # noqa: S311 - nothing secret
        lambda data: data.write_bytes(b"short"),
        lambda data: os.truncate(data, data.stat().st_size // 2),
        lambda data: os.truncate(data, data.stat().st_size - 4096),
        lambda data: os.truncate(data, 5000),
    ],
    ids=["empty", "zeros", "random", "short", "half", "last page", "one page"],
)
def test_a_spoilt_file_starts_anew(made: Path, spoil: "object") -> None:
    assert callable(spoil)
    spoil(made / "data.mdb")
    assert readable(made) == 0
    assert readable(made) == 0  # and stays usable


@pytest.mark.parametrize("seed", range(12))
def test_random_bytes_inside_never_crash(made: Path, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - nothing secret
    with (made / "data.mdb").open("r+b") as data:
        for _ in range(40):
            data.seek(chance.randrange(0, 500_000))
            data.write(chance.randbytes(chance.choice([2, 16, 300])))
    readable(made)


def test_a_large_one_that_outlived_its_process_must_have_its_size(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradewire_server.storage.lmdb_environment._QUICKLY_VERIFIED_BYTES", 0)
    environment = open_environment(made, max_bytes=4 << 20, durable=False, alone=True)
    environment.close()  # without mark_clean: as after a crash
    assert readable(made) == len(_VALUES)
    os.truncate(made / "data.mdb", (made / "data.mdb").stat().st_size - 8192)
    assert readable(made) == 0


def test_what_was_meant_to_last_is_kept_aside(made: Path) -> None:
    os.truncate(made / "data.mdb", 5000)
    open_environment(made, max_bytes=4 << 20, durable=True, alone=True).close()
    (aside,) = made.parent.glob("env.damaged-*")
    assert (aside / "data.mdb").stat().st_size == 5000


def test_the_same_one_cannot_be_opened_twice_in_a_process(made: Path) -> None:
    first = open_environment(made, max_bytes=4 << 20, durable=False, alone=True)
    with pytest.raises(lmdb.Error):
        open_environment(made, max_bytes=4 << 20, durable=False, alone=False)
    first.close()


async def test_the_engine_scores_without_a_directory_it_cannot_use(
    open_backends: OpenBackends, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("not a directory")
    engine = await open_backends(cache=CacheConfig(disk=DiskConfig(tmp_path / "file" / "cache")))
    reply = await engine.ports.embeddings.embed("", ["text"], [Tier.REFERENCE])
    assert not reply.failures
    # Who asks over HTTP learns what is wrong, and not where; whoever reads the log learns both.
    assert engine.health().degraded == ("disk: cannot be used (Not a directory; the log has the path)",)
    assert str(tmp_path) in caplog.text
    # Durable answers are not quietly kept in memory instead.
    assert isinstance(await engine.ports.reference_sets.store_prepared("set", "q", {"r": "It is r."}), Failure)
    assert isinstance(await engine.ports.reference_sets.prepared_answers("set", "q", ["r"]), Failure)


async def test_a_second_engine_of_the_process_on_one_directory_scores_without_it(
    open_backends: OpenBackends, tmp_path: Path
) -> None:
    cache = CacheConfig(disk=DiskConfig(tmp_path / "cache"))
    first, second = await open_backends(cache=cache), await open_backends(cache=cache)
    assert first.health().degraded == ()
    assert second.health().degraded[0].startswith("disk: ")
    assert str(tmp_path) not in second.health().degraded[0]
    for engine in (first, second):
        assert not (await engine.ports.embeddings.embed("", ["text"], [Tier.REFERENCE])).failures


@pytest.mark.parametrize("victim", ["references", "predictions-000001", "prepared"])
async def test_the_engine_rebuilds_what_is_damaged(open_backends: OpenBackends, tmp_path: Path, victim: str) -> None:
    texts, tiers = ["a reference", "a prediction"], [Tier.REFERENCE, Tier.PREDICTION]
    cache = CacheConfig(disk=DiskConfig(tmp_path / "cache"))
    engine = await open_backends(cache=cache)
    cold = await engine.ports.embeddings.embed("", texts, tiers)
    await engine.ports.reference_sets.store_prepared("set", "q", {"r": "It is r."})
    await engine.close()
    data = tmp_path / "cache" / "v1" / victim / "data.mdb"
    data.write_bytes(os.urandom(data.stat().st_size))
    again = await open_backends(cache=cache, registry=CollectorRegistry())
    reply = await again.ports.embeddings.embed("", texts, tiers)
    assert not reply.failures
    assert abs(reply.values - cold.values).max() < 1e-3
    lost = {"references": 0, "predictions-000001": 1}.get(victim)
    assert [position for position in range(2) if reply.sources[position] != AnswerSource.DISK] == (
        [] if lost is None else [lost]
    )
    expected = None if victim == "prepared" else "It is r."
    assert await again.ports.reference_sets.prepared_answers("set", "q", ["r"]) == (expected,)
    assert again.health().degraded == ()


async def test_another_layout_is_not_touched(open_backends: OpenBackends, tmp_path: Path) -> None:
    later = tmp_path / "cache" / "v2"
    later.mkdir(parents=True)
    (later / "data.mdb").write_bytes(b"of a later version")
    engine = await open_backends(cache=CacheConfig(disk=DiskConfig(tmp_path / "cache")))
    assert not (await engine.ports.embeddings.embed("", ["text"], [Tier.REFERENCE])).failures
    await engine.close()
    assert (later / "data.mdb").read_bytes() == b"of a later version"
    shutil.rmtree(later)


_MIB = 1 << 20


def opened(directory: StoreDirectory, *, durable: bool = False) -> WatchedEnvironment:
    return WatchedEnvironment(directory, directory.path / "part", max_bytes=_MIB, durable=durable)


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
        patched.setattr(lmdb_environment, "open_environment", full)
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


@contextmanager
def second_process(directory: Path) -> Iterator[Callable[[], str]]:
    """Open the store in another process; the call makes it rebuild the store and returns the line it then prints."""
    with subprocess.Popen(
        [sys.executable, "-c", _OTHER, str(directory)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        stdin, stdout = other.stdin, other.stdout
        assert stdout.readline() == "open\n"

        def rebuild_and_read() -> str:
            stdin.write("\n")
            stdin.flush()
            return stdout.readline()

        yield rebuild_and_read
    assert other.returncode == 0


def test_what_another_process_has_grown_and_somebody_cut_is_never_read(tmp_path: Path) -> None:
    directory = StoreDirectory(tmp_path)
    environment = opened(directory)
    fill(environment, 1)
    directory.share()
    with second_process(tmp_path) as rebuild_and_read:
        seen_bytes = (environment.path / "data.mdb").stat().st_size
        fill(environment, 400)
        # Not smaller than the other process has seen it, and far smaller than it has become.
        os.truncate(environment.path / "data.mdb", seen_bytes)
        assert rebuild_and_read() == "\n"
    with pytest.raises(TruncatedError), environment.reading():
        pass
    environment.close(suspect=False)
    directory.close()


def test_meta_pages_that_are_overwritten_are_never_read(tmp_path: Path) -> None:
    directory = StoreDirectory(tmp_path)
    environment = opened(directory)
    fill(environment)
    with (environment.path / "data.mdb").open("r+b") as data:
        data.write(bytes(8192))
    with pytest.raises(TruncatedError), environment.reading() as transaction:
        pytest.fail(f"it was read: {transaction}")
    environment.rebuild()
    fill(environment)
    environment.close(suspect=False)
    directory.close()


_OTHER = f"""
import sys
from pathlib import Path
from gradewire_server.storage.lmdb_environment import StoreDirectory, WatchedEnvironment
directory = StoreDirectory(Path(sys.argv[1]))
environment = WatchedEnvironment(directory, directory.path / "part", max_bytes={_MIB}, durable=False)
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
    with second_process(tmp_path) as rebuild_and_read:
        os.truncate(environment.path / "data.mdb", 4096)
        environment.rebuild()
        with environment.on_writer(write=True) as transaction:
            transaction.put(b"new", b"made by the first")
        assert rebuild_and_read() == "made by the first\n"
    environment.close(suspect=False)
    directory.close()
