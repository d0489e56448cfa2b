"""A quota that several processes draw from is one quota."""

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from gradewire_server.tenants.quota import TokenBucket
from gradewire_server.tenants.shared_levels import SharedLevels


def _bucket(path: Path, now_s: list[float], tokens_per_minute: int = 60, tenant: str = "a") -> TokenBucket:
    level = partial(SharedLevels(path).of, tenant)
    return TokenBucket(tokens_per_minute, clock=lambda: now_s[0], level=level)


def test_what_one_process_draws_is_drawn_for_all(tmp_path: Path) -> None:
    now_s = [100.0]
    one, other = _bucket(tmp_path / "quotas", now_s), _bucket(tmp_path / "quotas", now_s)
    foreign = _bucket(tmp_path / "quotas", now_s, tenant="b")
    assert one.take(40) == 0
    assert other.take(30) == 10
    assert other.take(20) == 0
    assert one.take(1) == 1
    assert foreign.take(60) == 0
    now_s[0] += 5
    assert one.take(6) == 1
    assert other.take(5) == 0


def test_another_rate_is_set_once(tmp_path: Path) -> None:
    now_s = [100.0]
    one, other = _bucket(tmp_path / "quotas", now_s), _bucket(tmp_path / "quotas", now_s)
    assert one.take(60) == 0
    one.set_rate(120)
    other.set_rate(120)
    assert other.take(61) == 0.5
    assert other.take(60) == 0


def test_a_process_that_starts_again_finds_what_was_drawn(tmp_path: Path) -> None:
    now_s = [100.0]
    assert _bucket(tmp_path / "quotas", now_s).take(60) == 0
    assert _bucket(tmp_path / "quotas", now_s).take(1) == 1


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """The lock of the file is held, as by a process that is stopped."""
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def test_nobody_waits_for_a_process_that_keeps_the_lock_and_what_was_drawn_meanwhile_is_settled(tmp_path: Path) -> None:
    now_s = [100.0]
    one, other = _bucket(tmp_path / "quotas", now_s), _bucket(tmp_path / "quotas", now_s)
    assert one.take(10) == 0
    with locked(tmp_path / "quotas"):
        assert one.take(30) == 0
        assert one.take(21) == 1, "it draws from what it saw last"
        now_s[0] += 5
        assert one.take(25) == 0
    assert one.take(1) == 1
    assert other.take(1) == 1, "it was drawn for all"
    now_s[0] += 10
    assert other.take(10) == 0


def test_both_settle_what_they_have_drawn_without_the_lock(tmp_path: Path) -> None:
    now_s = [100.0]
    one, other = _bucket(tmp_path / "quotas", now_s), _bucket(tmp_path / "quotas", now_s)
    with locked(tmp_path / "quotas"):
        assert one.take(40) == 0
        assert other.take(40) == 0
    assert one.take(20) == 0, "it does not know yet what the other one has drawn"
    assert other.take(1) == 41, "a debt of 40, which is paid off first"


def test_another_rate_that_is_set_without_the_lock_holds_for_all(tmp_path: Path) -> None:
    now_s = [100.0]
    one, other = _bucket(tmp_path / "quotas", now_s), _bucket(tmp_path / "quotas", now_s)
    assert one.take(60) == 0
    with locked(tmp_path / "quotas"):
        one.set_rate(120)
        assert one.take(60) == 0
    assert one.take(1) == 0.5
    assert other.take(1) == 0.5


def test_the_lock_of_a_process_that_is_killed_is_free(tmp_path: Path) -> None:
    now_s = [100.0]
    bucket = _bucket(tmp_path / "quotas", now_s)
    program = (
        "import fcntl, sys\nfile = open(sys.argv[1])\nfcntl.flock(file, fcntl.LOCK_EX)\nprint(flush=True)\ninput()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, os.fspath(tmp_path / "quotas")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        assert bucket.take(60) == 0
        fresh = _bucket(tmp_path / "quotas", now_s)
        assert fresh.take(60) == 0, "nobody knows what the other one has drawn"
        holder.send_signal(signal.SIGKILL)
        holder.wait(10)
        assert bucket.take(1) == 1
        assert fresh.take(1) == 61


def test_time_that_one_process_has_let_in_is_not_let_in_again_for_another_whose_clock_was_read_before(
    tmp_path: Path,
) -> None:
    early_s, late_s = [100.0], [100.0]
    early, late = _bucket(tmp_path / "quotas", early_s), _bucket(tmp_path / "quotas", late_s)
    assert late.take(60) == 0
    late_s[0], early_s[0] = 110.0, 105.0
    assert late.take(10) == 0
    assert early.take(1) == 1
    assert late.take(1) == 1
