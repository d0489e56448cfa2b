"""The HTTP gateway as the server's child: its socket and settings, its process, and its restarts."""

import asyncio
import json
import logging
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Self

from gradewire_gateway.settings import Bounds, GatewaySettings, ListenSettings, RewardPostSettings, UpstreamSettings
from gradewire_server.concurrency import SupervisedProcess, keep_running
from gradewire_server.rpc.sockets import bound_socket
from gradewire_server.settings.server import Settings

_MAX_PATH_BYTES: Final = 96
"""Of a socket's name; the system takes a few more."""
_BACKLOG: Final = 512


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Stays while gateways come and go.

    Attributes:
        listening: Where callers connect.
        private: Address of gRPC for the gateway alone, ``unix:PATH``.
    """

    listening: socket.socket
    private: str

    @property
    def port(self) -> int:
        """Where callers connect."""
        port: int = self.listening.getsockname()[1]
        return port


@contextmanager
def endpoint(settings: Settings) -> Iterator[Endpoint]:
    """Binds the port of the HTTP API and makes a directory that only this user can enter; raises BindError."""
    listening = bound_socket(settings.http_api.host, settings.http_api.port or 0, "http-api-port", backlog=_BACKLOG)
    directory = private_directory()
    try:
        yield Endpoint(listening, f"unix:{directory / 'grpc'}")
    finally:
        listening.close()
        shutil.rmtree(directory, ignore_errors=True)


def gateway_settings(settings: Settings, private: str) -> GatewaySettings:
    """What the gateway is told."""
    api, tls = settings.http_api, settings.listen.tls
    names = ("", "", "") if tls is None else (str(tls.cert), str(tls.key), str(tls.client_ca or ""))
    cert, key, client_ca = names
    return GatewaySettings(
        upstream=UpstreamSettings(target=private, private=True),
        listen=ListenSettings(
            host=api.host, port=api.port or 0, cert=cert, key=key, client_ca=client_ca, names=api.names
        ),
        bounds=Bounds(max_requests=api.max_requests, max_body_bytes=settings.limits.max_message_bytes),
        rewards=RewardPostSettings(**asdict(api.rewards)),
        metrics=not settings.listen.auth_http,
        log_share=settings.log.request_share,
        telemetry=settings.tracing.telemetry(),
        page=api.page,
    )


def private_directory() -> Path:
    """Makes a directory that only this user can enter, with a name short enough for sockets in it."""
    made = Path(tempfile.mkdtemp(prefix="gradewire-"))
    if len(bytes(made / "grpc")) <= _MAX_PATH_BYTES:
        return made
    made.rmdir()
    return Path(tempfile.mkdtemp(prefix="gradewire-", dir="/tmp"))


_MODULE: Final = "gradewire_gateway.child"
_START_S: Final = 60.0
_SILENT_S: Final = 30.0
_STOP_S: Final = 15.0
"""Longer than a gateway gives the requests that it answers."""


class GatewayLostError(Exception):
    """The process ended, or hung and was ended; the message says which."""


class GatewayProcess:
    """A process that answers HTTP; made by `start`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._supervised = SupervisedProcess(process)

    @classmethod
    async def start(cls, endpoint: Endpoint, settings: GatewaySettings, log_level: str) -> Self:
        """Starts one, and returns once it takes requests.

        Raises:
            GatewayLostError: It ended, or was not ready in time.
            OSError: No process can be made.
        """
        number = endpoint.listening.fileno()
        # A session of its own: Ctrl-C at the terminal is for the server, which lets its gateway finish first.
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",  # what lies in the working directory is no module of ours
            "-m",
            _MODULE,
            str(number),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            pass_fds=(number,),
            env={name: value for name, value in os.environ.items() if not name.upper().startswith("GRADEWIRE_")},
            start_new_session=True,
        )
        gateway = cls(process)
        try:
            await gateway._tell({"settings": settings.to_message(), "log_level": log_level})
            await gateway._beat(_START_S)
        except BaseException:
            await gateway.kill()
            raise
        return gateway

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    async def lost(self) -> GatewayLostError:
        """Waits until it ends or hangs; returns how. It is gone by then."""
        try:
            while True:
                await self._beat(_SILENT_S)
        except GatewayLostError as error:
            await self.kill()
            return error

    async def stop(self) -> None:
        """Lets it answer what it has taken, and waits until it is gone."""
        await self._supervised.stop(_STOP_S)

    async def kill(self) -> None:
        """Ends it at once and waits until it is gone."""
        await self._supervised.kill()

    async def _tell(self, message: object) -> None:
        writer = self._process.stdin
        assert writer is not None  # noqa: S101 - for mypy: it was asked for
        writer.write(json.dumps(message).encode() + b"\n")
        with suppress(ConnectionError):  # `_beat` says how it ended
            await writer.drain()

    async def _beat(self, timeout_s: float) -> None:
        """Waits for a sign of life; raises GatewayLostError."""
        reader = self._process.stdout
        assert reader is not None  # noqa: S101 - for mypy: it was asked for
        try:
            async with asyncio.timeout(timeout_s):
                if await reader.readline():
                    return
        except TimeoutError:
            raise GatewayLostError(f"the HTTP gateway has been silent for {timeout_s:g} s and was ended") from None
        raise GatewayLostError(f"the HTTP gateway {await self._supervised.ended()}")


_log = logging.getLogger(__name__)


class GatewaySupervisor:
    """One gateway at a time. Lives on one event loop.

    Args:
        endpoint: What gateways are handed.
        settings: What they are told.
        log_level: Of their log.
        restarted: Called whenever one was lost and another one is about to be started.

    Attributes:
        trouble: Why there is no gateway now; empty when there is one.
        pid: Process id of the gateway; None while there is none.
    """

    def __init__(
        self, endpoint: Endpoint, settings: GatewaySettings, log_level: str, *, restarted: Callable[[], None]
    ) -> None:
        self._endpoint = endpoint
        self._settings = settings
        self._log_level = log_level
        self._restarted = restarted
        self.trouble = "the HTTP gateway is starting"
        self.pid: int | None = None

    async def run(self) -> None:
        """Keeps one running until cancelled, which lets it answer what it has taken."""
        await keep_running(self._run_until_lost)

    async def _run_until_lost(self) -> None:
        why = await self._run_one()
        self.pid, self.trouble = None, why
        _log.error("%s; starting another one", why)
        self._restarted()

    async def _run_one(self) -> str:
        """Runs one until it is lost; returns how."""
        try:
            gateway = await GatewayProcess.start(self._endpoint, self._settings, self._log_level)
        except (GatewayLostError, OSError) as error:
            return str(error)
        try:
            self.pid, self.trouble = gateway.pid, ""
            _log.info("the HTTP gateway runs as process %d", gateway.pid)
            return str(await gateway.lost())
        finally:
            await asyncio.shield(gateway.stop())


@asynccontextmanager
async def running_gateway(supervisor: GatewaySupervisor) -> AsyncIterator[GatewaySupervisor]:
    """Keeps a gateway running for as long as the context lasts."""
    running = asyncio.create_task(supervisor.run())
    try:
        yield supervisor
    finally:
        running.cancel()
        await asyncio.wait((running,))
