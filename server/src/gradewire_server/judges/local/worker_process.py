"""One worker process, seen from the server."""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
from collections import deque
from dataclasses import asdict
from typing import Any, Final, Self

from gradewire_server.judges.worker.frames import FrameError, FrameReader, to_frame
from gradewire_server.judges.worker.messages import CoreLimits, OpenModel, RowResult, Run, read_results

_log = logging.getLogger(__name__)
_CHUNK_BYTES: Final = 1 << 16
_KEPT_LINES: Final = 20
_MODULE: Final = "gradewire_server.judges.worker.main"


class WorkerLostError(Exception):
    """The worker ended, hung, or sent something invalid, and is dead by now. The message says which."""


class ModelRefusedError(Exception):
    """The worker cannot open the model; the message says why."""


class LibraryMissingError(ModelRefusedError):
    """The worker cannot load what computes the model; the message says why."""


def _environment() -> dict[str, str]:
    """The server's environment without its settings: a process that only computes needs no tokens and addresses."""
    return {name: value for name, value in os.environ.items() if not name.upper().startswith("GRADEWIRE_")}


class WorkerProcess:
    """A process that computes for one judge. Made by `start`; one run at a time."""

    def __init__(self, process: asyncio.subprocess.Process, channel: socket.socket) -> None:
        self._process = process
        self._channel = channel
        self._frames = FrameReader()
        self._last_lines: deque[str] = deque(maxlen=_KEPT_LINES)
        self._listening = asyncio.create_task(self._listen())
        self.limits = CoreLimits(1, 1, 1, 1)
        self._closed = False

    @classmethod
    async def start(cls, model: OpenModel, *, timeout_s: float) -> Self:
        """Starts a process and has it open a model.

        Raises:
            ModelRefusedError: It cannot open it.
            WorkerLostError: It ended, or was not ready in time.
        """
        ours, theirs = socket.socketpair()
        ours.setblocking(False)  # noqa: FBT003 - the standard library's own signature
        try:
            # A session of its own: Ctrl-C at the terminal is for the server, which lets its worker finish first.
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-P",  # what lies in the working directory is no module of ours
                "-m",
                _MODULE,
                str(theirs.fileno()),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                pass_fds=(theirs.fileno(),),
                env=_environment(),
                start_new_session=True,
            )
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        worker = cls(process, ours)
        try:
            await worker._open(model, timeout_s=timeout_s)
        except BaseException:
            await worker.close()
            raise
        return worker

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    async def run(self, run: Run, *, timeout_s: float) -> list[RowResult]:
        """Has it compute one run; raises WorkerLostError. Cancelling ends the process, which would be amid a run."""
        try:
            return read_results(await self._ask(run.to_message(), timeout_s=timeout_s))
        except asyncio.CancelledError:
            self.kill()
            raise

    async def ended(self) -> str:
        """Waits for its end; returns how it ended. Its last output is only logged: it may name directories."""
        code = await self._process.wait()
        await asyncio.wait([self._listening])  # which leaves it alone when this is cancelled
        end = f"signal {-code}" if code < 0 else f"exit code {code}"
        if self._last_lines and not self._closed:
            _log.error("the last words of worker %d: %s", self.pid, " | ".join(self._last_lines)[-2000:])
            self._last_lines.clear()
        return f"the judge's worker ended with {end}"

    def kill(self) -> None:
        """Ends the process at once."""
        # Not by the library's own `kill`: that looks for an exit code first, and takes it away from who waits for it.
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    async def close(self) -> None:
        """Ends the process and waits until it is gone."""
        self._closed = True
        self._channel.close()
        self.kill()
        await self._process.wait()
        await asyncio.wait([self._listening])  # which leaves it alone when this is cancelled

    async def _open(self, model: OpenModel, *, timeout_s: float) -> None:
        answer = await self._ask(asdict(model), timeout_s=timeout_s)
        if "failed" in answer:
            refused = LibraryMissingError if answer.get("lacks_library") else ModelRefusedError
            raise refused(str(answer["failed"]))
        self.limits = CoreLimits(**answer["ready"])

    async def _ask(self, message: dict[str, Any], *, timeout_s: float) -> dict[str, Any]:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(timeout_s):
                await loop.sock_sendall(self._channel, to_frame(message))
                while True:
                    data = await loop.sock_recv(self._channel, _CHUNK_BYTES)
                    if not data:
                        raise WorkerLostError(await self.ended())
                    for answer in self._frames.feed(data):
                        return answer
        except TimeoutError as error:
            self.kill()
            raise WorkerLostError(f"the judge's worker did not answer within {timeout_s:g} s and was ended") from error
        except (OSError, FrameError) as error:
            self.kill()
            raise WorkerLostError(await self.ended()) from error

    async def _listen(self) -> None:
        """Reads what it prints: what libraries print last matters once the worker has died."""
        output = self._process.stdout
        assert output is not None  # noqa: S101 - for mypy: it was asked for
        while True:
            try:
                line = await output.readline()
            except ValueError:  # a line beyond the reader's limit
                continue
            if not line:
                return
            text = line.decode(errors="replace").rstrip()
            self._last_lines.append(text)
            _log.debug("worker %d: %s", self.pid, text)
