"""One limit is divided among those that nobody gave a size."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_server.settings.server import Settings, SettingsError
from gradewire_server.settings.shares import usable_memory

_MIB = 1 << 20


@given(limit=st.integers(512 * _MIB, 1 << 40))
def test_the_shares_are_inside_the_limit_and_never_more_than_is_needed(limit: int) -> None:
    settings = Settings.load(memory_limit=limit)
    shares = (
        settings.capacity.max_bytes,
        settings.capacity.max_stream_bytes,
        settings.engine.cache.memory_max_bytes,
    )
    assert settings.memory.limit_bytes == limit
    assert sum(shares) < limit / 2
    assert all(16 * _MIB <= share <= 256 * _MIB for share in shares)


def test_what_is_given_wins() -> None:
    settings = Settings.load(memory_limit="1GiB", memory_max_bytes="300MiB")
    assert settings.engine.cache.memory_max_bytes == 300 * _MIB
    assert settings.capacity.max_bytes == 52 * _MIB
    assert settings.capacity.max_stream_bytes == 52 * _MIB


def test_the_limit_of_the_container_is_found(tmp_path: Path) -> None:
    endless, container, absent = tmp_path / "endless", tmp_path / "container", tmp_path / "absent"
    endless.write_text("max\n")
    container.write_text(f"{64 * _MIB}\n")
    assert usable_memory((absent, container)) == 64 * _MIB
    assert usable_memory((endless, container)) == 64 * _MIB
    machine = usable_memory((endless, absent))
    assert machine > 64 * _MIB
    container.write_text(str(1 << 62))  # how the first version says that there is none
    assert usable_memory((container,)) == machine


def test_a_limit_has_a_unit() -> None:
    with pytest.raises(SettingsError, match="memory_limit"):
        Settings.load(memory_limit="much")
