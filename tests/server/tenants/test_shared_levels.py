"""A quota that several processes draw from is one quota."""

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
