"""The code inside a supervised process: start message, heartbeats, metrics and exit code."""

import asyncio
import atexit
import ctypes
import gc
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

from gradewire_server.process import ProcessLostError, Reporter, Stop
from gradewire_server.processes.process_connection import MetricsJson, ProcessConnection, add_up, to_json
from gradewire_server.rpc.log import FloodFilter, configure_log
from gradewire_server.settings.gpus import GpuShare
from gradewire_server.tenants.tenant import TokensFileError

_log = logging.getLogger(__name__)
_PR_SET_PDEATHSIG: Final = 1
BEAT_EVERY_S: Final = 0.5
_ASK_S: Final = 3.0
_LAST_METRICS_S: Final = 5.0
"""Timeout for sending the last metrics, shorter than the supervisor's timeout for the end of a process."""


@dataclass(frozen=True, slots=True)
class Position:
    """A server process's position.

    Attributes:
        index: Index of the process, from 0 to `count` - 1.
        directory: A directory that all processes share and that only this user can enter.
        judge_host: True if a separate process runs the judges for all server processes.
        shared: The file descriptor of the memory that all server processes share, or None without such memory.
        device: This process's value of the setting `device`, or "" for the value of the settings.
        device_processes: The number of processes that share this process's GPU.
    """

    index: int
    count: int
    port: int
    directory: Path
    judge_host: bool = False
    shared: int | None = None
    device: str = ""
    device_processes: int = 1

    @property
    def gpu(self) -> GpuShare | None:
        """This process's share of the GPUs, or None if the settings decide."""
        return GpuShare(self.device, self.device_processes) if self.device else None

    @property
    def private(self) -> str:
        """This process's private address, ``unix:PATH``."""
        return f"unix:{self.directory / f'grpc-{self.index}'}"

    @property
    def judges(self) -> str:
        """The judge host's address, ``unix:PATH``, or "" if there is no judge host."""
        return f"unix:{self.directory / 'judges'}" if self.judge_host else ""

    @property
    def judge_places(self) -> Path:
        """The file with the places for requests to a judge's server."""
        return self.directory / "judge-places"

    @property
    def quotas(self) -> Path:
        """The file with the tenants' quota levels."""
        return self.directory / "quotas"


class StartError(Exception):
    """Raised when a process ended before it could serve."""


class Child:
    """This process's connection to the supervisor. For one event loop only.

    If the supervisor ends, this process stops at once.
    """

    def __init__(self, position: Position, end: socket.socket, stop: Stop) -> None:
        self.position = position
        self._stop = stop
        self._registry: CollectorRegistry | None = None
        self._connection = ProcessConnection(end, self._own, lambda _report: None)

    @asynccontextmanager
    async def joined(self, registry: CollectorRegistry, lifecycle: Reporter) -> AsyncIterator[None]:
        """Send heartbeats within the context, and the final metrics at its end."""
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
        """Return the combined metrics of all processes."""
        return add_up([await self._connection.ask(_ASK_S)])

    async def _send_last(self, metrics_json: MetricsJson) -> None:
        try:
            await self._connection.send_metrics(metrics_json, _LAST_METRICS_S)
        except TimeoutError:
            _log.warning(
                "The supervisor did not read this process's final metrics within %g s, so sums over all processes "
                "lack this process's counts since the last scrape",
                _LAST_METRICS_S,
            )
        except ConnectionError:
            pass  # the supervisor, which keeps the sums, is gone

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
    """The supervisor's message to a new process. `values` contains the settings given as flags."""

    position: Position
    values: Mapping[str, Any]

    def encode(self) -> bytes:
        """Return the message as a line of JSON."""
        message = {"position": asdict(self.position), "supervisor": os.getpid(), "values": dict(self.values)}
        return json.dumps(message, default=str).encode() + b"\n"

    @classmethod
    def read(cls) -> Self:
        """Read the message from standard input, and make the system kill this process if its supervisor ends."""
        message = json.loads(sys.stdin.readline())
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != message["supervisor"]:  # the supervisor ended before prctl took effect
            sys.exit(1)
        position = message["position"]
        return cls(Position(**{**position, "directory": Path(position["directory"])}), message["values"])


def run_to_exit(serve: Callable[[FloodFilter], Coroutine[Any, Any, None]], log_level: str) -> int:
    """Set up the log, serve, and return the exit code, which is 1 after an error.

    After a `ProcessLostError`, the process ends here, because a hung driver would block Python's own end.
    """
    flood = configure_log(log_level)
    # At its end, Python would look for garbage among all imported objects, which takes a quarter of a second.
    atexit.register(gc.freeze)
    # Creation times of counters would double the number of scraped lines.
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
    except ProcessLostError as error:
        _log.critical("this process ends, so that another one can replace it: %s", error)
        flood.report(at_once=True)
        logging.shutdown()
        os._exit(1)
    finally:
        for number, handler in handlers.items():  # uvloop does not remove its own handlers
            signal.signal(number, handler)
        flood.report(at_once=True)
    return 0
