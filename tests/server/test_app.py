"""A server process takes part in the shared memory, or serves without it."""

import os
from pathlib import Path

import pytest

from gradewire_server.app import _shared_table
from gradewire_server.processes.child import Position
from gradewire_server.storage.shared_table import MIN_BYTES, create_table


def test_a_process_opens_the_memory_that_its_supervisor_created(tmp_path: Path) -> None:
    descriptor = create_table(MIN_BYTES, 2)
    one, two = (_shared_table(Position(index, 2, 0, tmp_path, shared=descriptor)) for index in range(2))
    assert one is not None
    assert two is not None
    one.put(b"n" * 16, b"value", pinned=False)
    assert two.get(b"n" * 16) == (b"value", False)
    os.close(descriptor)


def test_a_process_serves_without_memory_that_it_cannot_use(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert _shared_table(Position(0, 2, 0, tmp_path)) is None
    assert not caplog.text
    other = os.memfd_create("another")
    os.ftruncate(other, MIN_BYTES)
    for descriptor in (other, 10_000):
        caplog.clear()
        assert _shared_table(Position(0, 2, 0, tmp_path, shared=descriptor)) is None
        assert "shares no memory" in caplog.text
    os.close(other)
