"""A supervisor, which starts, watches and replaces a judge's worker process."""

import asyncio
import logging
import signal
import socket
from collections import deque
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, Final, Self

from typing_extensions import override

from gradewire_models.judges.cores.rows import CoreLimits, RowResult, Run
from gradewire_server.judges.worker.messages import (
    FrameError,
    FrameReader,
    OpenModel,
    read_results,
    to_frame,
)
from gradewire_server.process import SupervisedProcess, keep_running, start_module
from gradewire_server.settings.judge import EmbeddedJudgeConfig

_log = logging.getLogger(__name__)
_CHUNK_BYTES: Final = 1 << 16
_KEPT_LINES: Final = 20
_MODULE: Final = "gradewire_server.judges.worker.main"

_FAILED_STARTS: Final = 3
"""Number of consecutive failed restarts after which waiting callers get an error."""


class WorkerLostError(Exception):
    """Raised when the worker ended, hung or sent invalid data, and is dead now."""


class ModelRefusedError(Exception):
    """Raised when the worker cannot open the model."""


class LibraryMissingError(ModelRefusedError):
    """Raised when the worker cannot load the model's library, or cannot use the GPU."""


class WorkerProcess(SupervisedProcess):
    """A process that computes one judge's runs, one at a time."""

    def __init__(self, process: asyncio.subprocess.Process, channel: socket.socket) -> None:
        super().__init__(process)
        self._channel = channel
        self._frames = FrameReader()
        self._last_lines: deque[str] = deque(maxlen=_KEPT_LINES)
        self._listening = asyncio.create_task(self._listen())
        self.limits = CoreLimits(1, 1, 1, 1)
        self._closed = False

    @classmethod
    async def start(cls, model: OpenModel, *, timeout_s: float) -> Self:
        """Start a process that opens a model.

        Raises:
            ModelRefusedError: The process cannot open the model.
            WorkerLostError: The process ended, or was not ready in time.
        """
        ours, theirs = socket.socketpair()
        ours.setblocking(False)  # noqa: FBT003 - the standard library's own signature
        try:
            process = await start_module(
                _MODULE, theirs.fileno(), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
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

    async def run(self, run: Run, *, timeout_s: float) -> list[RowResult]:
        """Compute one run; raise WorkerLostError if the worker is lost. Cancelling this call kills the process."""
        try:
            return read_results(await self._ask(run._asdict(), timeout_s=timeout_s))
        except asyncio.CancelledError:
            self.signal(signal.SIGKILL)
            raise

    @override
    async def wait_for_exit(self) -> str:
        end = await super().wait_for_exit()
        await asyncio.wait([self._listening])  # unlike gather, wait does not cancel the task if this call is cancelled
        if self._last_lines and not self._closed:
            # Callers must not see these lines, because they may contain paths.
            _log.error("last output of worker %d: %s", self.pid, " | ".join(self._last_lines)[-2000:])
            self._last_lines.clear()
        return f"the judge's worker {end}"

    async def close(self) -> None:
        """Kill the process and wait until it has ended."""
        self._closed = True
        self._channel.close()
        await self.kill()
        await asyncio.wait([self._listening])  # unlike gather, wait does not cancel the task if this call is cancelled

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
                        raise WorkerLostError(await self.wait_for_exit())
                    for answer in self._frames.feed(data):
                        return answer
        except TimeoutError as error:
            self.signal(signal.SIGKILL)
            raise WorkerLostError(f"the judge's worker did not answer within {timeout_s:g} s and was ended") from error
        except (OSError, FrameError) as error:
            self.signal(signal.SIGKILL)
            raise WorkerLostError(await self.wait_for_exit()) from error

    async def _listen(self) -> None:
        """Keep the process's last lines, which show the cause of a crash."""
        while True:
            try:
                line = await self.read_line()
            except ValueError:  # a line beyond the reader's limit
                continue
            if not line:
                return
            text = line.decode(errors="replace").rstrip()
            self._last_lines.append(text)
            _log.debug("worker %d: %s", self.pid, text)


def run_timeout_s(run: Run, config: EmbeddedJudgeConfig, *, first: bool) -> float:
    """Return one run's time limit in seconds.

    A worker's first run may take as long as the start, because the run reads the mapped file from disk. With a 1.5 B
    model, llama.cpp needs a sixteenth of a second per token on a dedicated core.
    """
    return config.run_timeout_s + config.token_timeout_s * run.tokens + (config.start_timeout_s if first else 0.0)


class WorkerSupervisor:
    """A supervisor that replaces a lost worker. For one event loop only.

    Args:
        restarted: Function to call when a worker was lost, before the next worker starts.

    Attributes:
        trouble: The reason why there is no worker now, or "" if there is a worker.
    """

    def __init__(self, model: OpenModel, config: EmbeddedJudgeConfig, *, restarted: Callable[[], None]) -> None:
        self.starts = 0
        self.limits = CoreLimits(1, 1, 1, 1)
        self.trouble = ""
        self._model = model
        self._config = config
        self._restarted = restarted
        self._worker: WorkerProcess | None = None
        self._has_run = False
        self._start_s = 0.0
        self._failed_starts = 0
        self._changed = asyncio.Event()
        self._keeping: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int | None:
        """The worker's process ID, or None while there is no worker."""
        return None if self._worker is None else self._worker.pid

    @property
    def gave_up(self) -> bool:
        """True after several consecutive failed restarts, so that callers do not wait."""
        return self._failed_starts >= _FAILED_STARTS

    @property
    def retry_after_s(self) -> float:
        """The number of seconds after which a retry may succeed."""
        return round(1.0 + self._start_s, 1)

    async def start(self) -> None:
        """Start the first worker; raise ModelRefusedError or WorkerLostError if this fails."""
        worker = await self._start()
        self.limits = worker.limits
        self._keeping = asyncio.create_task(keep_running(self._run_one))

    async def wait(self) -> bool:
        """Wait for a worker; return False after too many failed restarts."""
        while self._worker is None and not self.gave_up:
            await self._changed.wait()
        return self._worker is not None

    async def back(self) -> None:
        """Wait for a worker, without a time limit."""
        while self._worker is None:
            await self._changed.wait()

    async def run(self, run: Run) -> list[RowResult]:
        """Compute a run; raise WorkerLostError if the worker is lost."""
        worker = self._worker
        if worker is None:
            raise WorkerLostError(self.trouble or "the judge's worker is not started")
        try:
            results = await worker.run(run, timeout_s=run_timeout_s(run, self._config, first=not self._has_run))
        except WorkerLostError as error:
            self._lose(worker, str(error))
            raise
        self._has_run = True
        return results

    async def close(self) -> None:
        """End the worker, and wait until it has ended."""
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.wait([self._keeping])
        if self._worker is not None:
            await self._worker.close()
            self._worker = None

    async def _run_one(self) -> None:
        try:
            worker = self._worker or await self._start()
        except (WorkerLostError, ModelRefusedError, OSError) as error:
            self._failed_starts += 1
            self.trouble = "the judge's worker cannot be started again"
            _log.error("cannot restart the judge's worker (attempt %d): %s", self._failed_starts, error)
            self._announce()
        else:
            try:
                self._lose(worker, await worker.wait_for_exit())
            finally:
                await worker.close()
        self._restarted()

    async def _start(self) -> WorkerProcess:
        loop = asyncio.get_running_loop()
        begin_s = loop.time()
        self._worker = worker = await WorkerProcess.start(self._model, timeout_s=self._config.start_timeout_s)
        self._start_s = loop.time() - begin_s
        self._has_run = False
        if self.starts:
            _log.info("the judge's worker is running again")
        self.starts += 1
        self._failed_starts = 0
        self.trouble = ""
        self._announce()
        return worker

    def _lose(self, worker: WorkerProcess, why: str) -> None:
        if self._worker is worker:
            _log.error("%s. Starting a new worker", why)
            self._worker = None
            self.trouble = why

    def _announce(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
