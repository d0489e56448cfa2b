"""What processes tell each other arrives whole, also as they end; what cannot be read ends the link in order."""

import asyncio
import logging
import socket
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from typing_extensions import override

from gradewire_server.processes.figures import Families
from gradewire_server.processes.link import Link
from gradewire_server.processes.member import Member, Place
from gradewire_server.stop import Stop

_LARGE = 8_000_000
"""Characters: more than the system keeps for a reader that is away."""


class _Figures(Collector):
    @override
    def collect(self) -> Iterable[Metric]:
        return [Metric("large", "x" * _LARGE, "gauge")]


async def _none() -> Families:
    return []


async def _joined_once(place: Place, end: socket.socket) -> None:
    registry = CollectorRegistry()
    registry.register(_Figures())
    lifecycle = SimpleNamespace(ready=True, report=dict)
    async with Member(place, end, Stop()).joined(registry, cast("Any", lifecycle)):
        await asyncio.sleep(0.1)


async def test_the_last_figures_arrive_whole_from_a_process_that_ends_at_once(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)  # noqa: FBT003 - socket takes it by position
    said: list[dict[str, Any]] = []
    reading = asyncio.create_task(Link(ours, _none, said.append).run())
    # As in a process of its own, its event loop is gone at once when it has left.
    await asyncio.to_thread(asyncio.run, _joined_once(Place(0, 2, 0, tmp_path), theirs))
    theirs.close()
    async with asyncio.timeout(30):
        await reading
    assert "figures" in said[-1]
    ((name, documentation, *_),) = said[-1]["figures"]
    assert (name, len(documentation)) == ("large", _LARGE)


async def test_a_supervisor_that_reads_nothing_holds_no_process_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("gradewire_server.processes.member._LAST_FIGURES_S", 0.2)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        await asyncio.to_thread(asyncio.run, _joined_once(Place(0, 2, 0, tmp_path), theirs))
    assert "has not read the last figures" in caplog.text


@pytest.mark.parametrize(
    ("last", "logged"),
    [
        (b'["figures", -1, [["gradewire_ca', 0),
        (b"", 0),
        (b"Segmentation fault\n", 1),
        (b"\xff\xfe\n", 1),
        (b"7\n", 1),
        (b"[]\n", 1),
    ],
)
async def test_what_is_no_message_ends_the_link_in_order(
    last: bytes, logged: int, caplog: pytest.LogCaptureFixture
) -> None:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)  # noqa: FBT003 - socket takes it by position
    said: list[dict[str, Any]] = []
    link = Link(ours, _none, said.append)
    reading = asyncio.create_task(link.run())
    with theirs:
        await asyncio.to_thread(theirs.sendall, b'["beat", {"phase": "serving"}]\n' + last)
        theirs.shutdown(socket.SHUT_WR)
        await reading
    assert said == [{"phase": "serving"}]
    errors = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    assert len(errors) == logged
    assert all("report this defect" in each for each in errors)


async def test_a_line_that_is_too_long_ends_the_link_in_order(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("gradewire_server.processes.link._MAX_LINE_BYTES", 1 << 10)
    ours, theirs = socket.socketpair()
    ours.setblocking(False)  # noqa: FBT003 - socket takes it by position
    reading = asyncio.create_task(Link(ours, _none, lambda _: None).run())
    with theirs:
        await asyncio.to_thread(theirs.sendall, b"[" * (4 << 10) + b"\n")
        await reading
    assert caplog.text.count("report this defect") == 1
