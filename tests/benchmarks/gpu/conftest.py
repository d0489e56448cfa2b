"""Servers of these tests start without what only measurements on a GPU need."""

from typing import Final

import pytest

QUICK: Final = {"GRADEWIRE_WINDOW_CHOICE": "fp32", "GRADEWIRE_LONE_RUN_THREADS": "1"}
"""No 8-bit graph is written into a new store, and no second session is opened: each takes seconds."""


@pytest.fixture(autouse=True)
def _quick_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in QUICK.items():
        monkeypatch.setenv(name, value)
