"""The HTTP gateway as a child process of the server."""

import asyncio
import fcntl
import json
import logging
import os
import shutil
import socket
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Final, Self

from gradewire_gateway.settings import Bounds, GatewaySettings, ListenSettings, RewardPostSettings, UpstreamSettings
from gradewire_server.process import SupervisedProcess, keep_running, start_module
from gradewire_server.rpc.sockets import bound_socket
from gradewire_server.settings.server import Settings
from gradewire_server.settings.shares import gateway_bytes

_log = logging.getLogger(__name__)

_MAX_PATH_BYTES: Final = 96
_PREFIX: Final = "gradewire-"
_OWNER: Final = "owner"
_BACKLOG: Final = 512
_MODULE: Final = "gradewire_gateway.serving"
_BODIES: Final = 28
"""The gateway's memory divided by this number is the limit for one body."""
_IN_FLIGHT: Final = 5
"""The gateway's memory divided by this number is the limit for all bodies and replies in flight."""
_START_S: Final = 60.0
_SILENT_S: Final = 30.0
_STOP_S: Final = 15.0
"""Timeout for stopping a gateway, longer than the gateway's timeout for requests in flight."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The listening socket and gRPC address that the gateway keeps across restarts."""

    listening: socket.socket
    private: str

    @property
    def port(self) -> int:
        """The port that callers connect to."""
        port: int = self.listening.getsockname()[1]
        return port


@contextmanager
def endpoint(settings: Settings) -> Iterator[Endpoint]:
    """Bind the HTTP API's port, and create a directory that only this user can enter; raise BindError on failure."""
    listening = bound_socket(settings.http_api.host, settings.http_api.port or 0, "http-api-port", backlog=_BACKLOG)
    with listening, private_directory() as directory:
        yield Endpoint(listening, f"unix:{directory / 'grpc'}")


def _bounds(settings: Settings) -> Bounds:
    """Return bounds within the gateway's share of the memory.

    Reading JSON needs up to ten times the body's size, because Python stores each character in 4 bytes if a string
    contains an emoji.
    """
    share = gateway_bytes(settings.given["memory_limit"])
    return Bounds(
        max_requests=settings.http_api.max_requests,
        max_body_bytes=min(settings.limits.max_message_bytes, share // _BODIES),
        max_bytes_in_flight=share // _IN_FLIGHT,
    )


def gateway_settings(settings: Settings, private: str) -> GatewaySettings:
    """Return the gateway's settings. `private` contains the gRPC servers' addresses."""
    api, tls = settings.http_api, settings.listen.tls
    cert, key, client_ca = ("", "", "") if tls is None else (str(tls.cert), str(tls.key), str(tls.client_ca or ""))
    return GatewaySettings(
        upstream=UpstreamSettings(target=private, private=True, asks_tokens=not settings.listen.is_open),
        listen=ListenSettings(
            host=api.host, port=api.port or 0, cert=cert, key=key, client_ca=client_ca, names=api.names
        ),
        bounds=_bounds(settings),
        rewards=RewardPostSettings(**asdict(api.rewards)),
        metrics="metrics" not in settings.listen.auth_also,
        log_level=settings.log.level,
        tracing=settings.tracing.settings(),
        page=api.page,
    )


@contextmanager
def private_directory() -> Iterator[Path]:
    """Create a directory that only this user can enter, and remove it at the end.

    The directory's path is short enough for sockets. Directories of killed servers are removed first.
    """
    directory = _directory_with_short_name()
    try:
        _remove_left_behind(directory.parent)
        with (directory / f"{_OWNER}.new").open("w") as owner:
            fcntl.flock(owner, fcntl.LOCK_EX)
            # Lock the file before it gets its final name, or another server could remove the directory.
            (directory / f"{_OWNER}.new").rename(directory / _OWNER)
            yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _directory_with_short_name() -> Path:
    made = Path(tempfile.mkdtemp(prefix=_PREFIX))
    if len(bytes(made / "grpc")) <= _MAX_PATH_BYTES:
        return made
    made.rmdir()
    return Path(tempfile.mkdtemp(prefix=_PREFIX, dir="/tmp"))


def _remove_left_behind(folder: Path) -> None:
    for directory in folder.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            if directory.is_symlink() or directory.stat().st_uid != os.getuid():
                continue
            with (directory / _OWNER).open() as owner:
                fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(directory)


class GatewayLostError(Exception):
    """Raised when a gateway process ended or hung."""


class GatewayProcess(SupervisedProcess):
    """A process that serves HTTP."""

    @classmethod
    async def open(cls, endpoint: Endpoint, settings: GatewaySettings) -> Self:
        """Start a gateway, and wait until it accepts requests.

        Raises:
            GatewayLostError: The process ended or was not ready in time.
            OSError: The process cannot be started.
        """
        gateway = cls(await start_module(_MODULE, endpoint.listening.fileno(), stdout=asyncio.subprocess.PIPE))
        try:
            await gateway.send(json.dumps(settings.to_message()).encode() + b"\n")
            await gateway.wait_for_beat(_START_S)
        except BaseException:
            await gateway.kill()
            raise
        return gateway

    async def lost(self) -> str:
        """Wait until the process ends, or kill it if it hangs. Return a message about the loss."""
        try:
            while True:
                await self.wait_for_beat(_SILENT_S)
        except GatewayLostError as error:
            await self.kill()
            return str(error)

    async def wait_for_beat(self, timeout_s: float) -> None:
        """Wait for a heartbeat; raise GatewayLostError if none arrives in time."""
        try:
            async with asyncio.timeout(timeout_s):
                if await self.read_line():
                    return
        except TimeoutError:
            raise GatewayLostError(f"the HTTP gateway sent no heartbeat for {timeout_s:g} s and was killed") from None
        raise GatewayLostError(f"the HTTP gateway {await self.wait_for_exit()}")


class GatewaySupervisor:
    """A supervisor that keeps one gateway running. For one event loop only.

    Attributes:
        trouble: The reason why no gateway is running, or "" if a gateway is running.
    """

    def __init__(self, start: Callable[[], Awaitable[GatewayProcess]], restarted: Callable[[], None]) -> None:
        self._start = start
        self._restarted = restarted
        self.trouble = "the HTTP gateway is starting"

    async def run(self) -> None:
        """Keep a gateway running until you cancel this call. Then let the gateway answer requests in flight."""
        await keep_running(self._run_until_lost)

    async def _run_until_lost(self) -> None:
        try:
            gateway = await self._start()
        except (GatewayLostError, OSError) as error:
            self.trouble = str(error)
        else:
            self.trouble = ""
            _log.info("the HTTP gateway runs as process %d", gateway.pid)
            try:
                self.trouble = await gateway.lost()
            finally:
                await asyncio.shield(gateway.stop(_STOP_S))
        _log.error("%s; starting a new process", self.trouble)
        self._restarted()


@asynccontextmanager
async def running_gateway(
    endpoint: Endpoint, settings: Settings, private: str, restarted: Callable[[], None]
) -> AsyncIterator[GatewaySupervisor]:
    """Keep a gateway running within the context, and call `restarted` whenever a gateway is lost.

    `private` contains the gRPC servers' private addresses (``unix:PATH``), separated by commas.
    """
    start = partial(GatewayProcess.open, endpoint, gateway_settings(settings, private))
    supervisor = GatewaySupervisor(start, restarted)
    running = asyncio.create_task(supervisor.run())
    _log.info("HTTP API on port %d", endpoint.port)
    try:
        yield supervisor
    finally:
        running.cancel()
        await asyncio.wait((running,))
