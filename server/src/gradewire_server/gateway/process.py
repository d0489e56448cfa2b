"""One gateway process, seen from the server."""

import asyncio
import json
import os
import sys
from contextlib import suppress
from typing import Final, Self

from gradewire_gateway.settings import GatewaySettings
from gradewire_server.concurrency.supervised import SupervisedProcess
from gradewire_server.gateway.endpoint import Endpoint

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
