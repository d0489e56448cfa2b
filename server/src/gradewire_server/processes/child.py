"""This process as one of several: start message, position, reports to the supervisor; and the exit code of a server."""

import asyncio
import ctypes
import json
import logging
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Self

import uvloop
from prometheus_client import CollectorRegistry, disable_created_metrics
from prometheus_client.metrics_core import Metric

from gradewire_server.process import Reporter, Stop
from gradewire_server.processes.process_connection import MetricsJson, ProcessConnection, add_up, to_json
from gradewire_server.rpc.log import FloodFilter, configure_log
from gradewire_server.tenants.tenant import TokensFileError

_log = logging.getLogger(__name__)
_PR_SET_PDEATHSIG: Final = 1
BEAT_EVERY_S: Final = 0.5
_ASK_S: Final = 3.0
_LAST_FIGURES_S: Final = 5.0
"""Less than the supervisor gives a process to end, beyond what its calls get."""


@dataclass(frozen=True, slots=True)
class Position:
    """The position of a process among the others, from 0.

    Attributes:
        port: Of gRPC, which they share.
        directory: That only this user can enter, of all of them together.
        judge_host: Whether one of them runs the judges of all.
    """

    index: int
    count: int
    port: int
    directory: Path
    judge_host: bool = False

    @property
    def private(self) -> str:
        """Address of this process alone, ``unix:PATH``."""
        return f"unix:{self.directory / f'grpc-{self.index}'}"

    @property
    def judges(self) -> str:
        """Address of the process that runs the judges, ``unix:PATH``; empty where there is none."""
        return f"unix:{self.directory / 'judges'}" if self.judge_host else ""

    @property
    def quotas(self) -> Path:
        """File in which the processes keep what tenants have drawn of their quotas."""
        return self.directory / "quotas"


class StartError(Exception):
    """A process ended before it served."""


class Child:
    """One of several processes; stops at once where its supervisor is gone. Lives on one event loop."""

    def __init__(self, position: Position, end: socket.socket, stop: Stop) -> None:
        self.position = position
        self._stop = stop
        self._registry: CollectorRegistry | None = None
        self._connection = ProcessConnection(end, self._own, lambda _report: None)

    @asynccontextmanager
    async def joined(self, registry: CollectorRegistry, lifecycle: Reporter) -> AsyncIterator[None]:
        """Beats for as long as the context lasts, and sends the last figures at its end."""
        self._registry = registry
        reading = asyncio.create_task(self._until_alone())
        beating = asyncio.create_task(self._beats(lifecycle))
        try:
            yield
        finally:
            beating.cancel()
            await self._send_last(to_json(registry.collect()))
            reading.cancel()
            await asyncio.wait((beating, reading))

    async def metrics(self) -> list[Metric]:
        """Those of all processes together."""
        return add_up([await self._connection.ask(_ASK_S)])

    async def _send_last(self, metrics_json: MetricsJson) -> None:
        try:
            await self._connection.send_metrics(metrics_json, _LAST_FIGURES_S)
        except TimeoutError:
            _log.warning(
                "the supervisor has not read the last figures of this process in %g s: what it has counted since the "
                "figures were last looked at is missing from the sums",
                _LAST_FIGURES_S,
            )
        except ConnectionError:
            pass  # the supervisor is gone, and the sums with it

    async def _own(self) -> MetricsJson:
        return [] if self._registry is None else to_json(self._registry.collect())

    async def _beats(self, lifecycle: Reporter) -> None:
        while True:
            self._connection.beat({**lifecycle.report(), "ready": lifecycle.ready})
            await asyncio.sleep(BEAT_EVERY_S)

    async def _until_alone(self) -> None:
        await self._connection.run()
        self._stop.request()
        self._stop.request()


@dataclass(frozen=True, slots=True)
class StartMessage:
    """The line that the supervisor writes to a new process.

    `values` are settings that were given as flags; variables and the file of settings it reads by itself, so that a
    process that is started again takes what they say by then.
    """

    position: Position
    values: Mapping[str, Any]

    def encode(self) -> bytes:
        """Return it as the supervisor writes it."""
        message = {"position": asdict(self.position), "supervisor": os.getpid(), "values": dict(self.values)}
        return json.dumps(message, default=str).encode() + b"\n"

    @classmethod
    def read(cls) -> Self:
        """Read it; from then on the system ends this process when its supervisor is gone, whatever it is doing."""
        message = json.loads(sys.stdin.readline())
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != message["supervisor"]:  # it went before the system was told
            sys.exit(1)
        position = message["position"]
        return cls(Position(**{**position, "directory": Path(position["directory"])}), message["values"])


def run_to_exit(serve: Callable[[FloodFilter], Coroutine[Any, Any, None]], log_level: str) -> int:
    """Log, serve, and return the exit code: 0, or 1 where it cannot serve, which the log explains."""
    flood = configure_log(log_level)
    # A creation time beside every counter would double the lines that are scraped, and nobody reads it.
    disable_created_metrics()  # type: ignore[no-untyped-call]
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        uvloop.run(serve(flood))
    except TokensFileError as error:
        _log.error("cannot serve: auth_tokens_file: %s", error)
        return 1
    except (OSError, StartError) as error:
        _log.error("cannot serve: %s", error)
        return 1
    finally:
        for number, handler in handlers.items():  # uvloop leaves those of its closed loop, which do nothing
            signal.signal(number, handler)
        flood.report(at_once=True)
    return 0
