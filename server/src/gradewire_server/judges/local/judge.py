"""A judge in a worker process of this machine."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from typing_extensions import override

from gradewire_server.domain.judge import Choice, Choose, Generate, Generated
from gradewire_server.domain.needs import Source
from gradewire_server.domain.ports import A, JudgeReply, ModelStatus
from gradewire_server.domain.result import Failure, Status, Timing
from gradewire_server.judges.backend import Judge
from gradewire_server.judges.local.chat import ChatTokenizer, FixedTooLongError, PromptTokens, PromptTooLongError
from gradewire_server.judges.local.labels import LabelsError
from gradewire_server.judges.local.queue import EmbeddedQueue, Planned
from gradewire_server.judges.local.supervisor import WorkerSupervisor
from gradewire_server.judges.local.work import Work
from gradewire_server.judges.local.worker_process import WorkerLostError
from gradewire_server.judges.observers import LocalJudgeObserver, ModelRun
from gradewire_server.judges.stops import TextEnd
from gradewire_server.judges.worker.messages import RowResult

_log = logging.getLogger(__name__)
_CLOSED: Final = Failure(Status.UNAVAILABLE, "the judge is being closed")
_DEFECT: Final = Failure(Status.INTERNAL, "the judge's scheduling failed; the server's log says why")
_NO_TOKENS: Final = Failure(Status.INVALID_PARAMETER, "max_tokens has to be at least 1")
_TOO_LATE: Final = Failure(Status.TIMEOUT, "the judge was not done by the deadline")


@dataclass(frozen=True, slots=True)
class _Asked:
    prompt: PromptTokens
    labels: tuple[int, ...] = ()


class _RefusedError(Exception):
    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class EmbeddedJudge(Judge):
    """A judge of this machine. Lives on the event loop it was made on.

    Args:
        status: How it is shown.
        tokenizer: Its tokenizer and chat template.
        supervisor: Of its worker, which is started.
        queue: Empty.
        observer: Told of runs.
    """

    def __init__(
        self,
        status: ModelStatus,
        tokenizer: ChatTokenizer,
        supervisor: WorkerSupervisor,
        queue: EmbeddedQueue,
        observer: LocalJudgeObserver,
    ) -> None:
        self._status = status
        self._tokenizer = tokenizer
        self._supervisor = supervisor
        self._queue = queue
        self._observer = observer
        self._loop = asyncio.get_running_loop()
        # One thread: a megabyte of text keeps the loop free, and needs stay in the order in which they came.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"tokenize-{status.name}")
        self._arrived = asyncio.Event()
        self._starts = supervisor.starts
        self._closed = False
        self._working = self._loop.create_task(self._work())

    @property
    @override
    def status(self) -> ModelStatus:
        return self._status

    @property
    def waiting(self) -> int:
        """Needs that have not begun."""
        return self._queue.waiting

    @property
    def worker_pid(self) -> int | None:
        """Of the process that computes; None while there is none."""
        return self._supervisor.pid

    @override
    async def choose(self, need: Choose, *, deadline_s: float | None = None) -> JudgeReply[Choice]:
        def tokenize() -> _Asked:
            labels = self._tokenizer.labels(need.prompt.opening, need.options)
            return _Asked(self._tokenizer.prompt(need.prompt, labels.shared), labels.tokens)

        def read(asked: _Asked, result: RowResult, work: Work) -> Choice:
            del work
            tokens = len(asked.prompt.fixed) + len(asked.prompt.item)
            return Choice(result.probabilities, result.mass, tokens, asked.prompt.truncated)

        return await self._ask(tokenize, self._choice, read, deadline_s)

    @override
    async def generate(self, need: Generate, *, deadline_s: float | None = None) -> JudgeReply[Generated]:
        if need.max_tokens < 1:
            return JudgeReply(_NO_TOKENS, Source.COMPUTED, Timing())
        end = TextEnd(self._tokenizer.text, self._tokenizer.ends, need.stop)

        def tokenize() -> _Asked:
            opening = self._tokenizer.opening(need.prompt.opening)
            return _Asked(self._tokenizer.prompt(need.prompt, opening, answer_tokens=need.max_tokens))

        def work(asked: _Asked) -> Work:
            return self._new_work(asked, max_tokens=need.max_tokens, ended=end.reached)

        def read(asked: _Asked, result: RowResult, work: Work) -> Generated:
            del result
            tokens = len(asked.prompt.fixed) + len(asked.prompt.item)
            text, complete = end.read(work.written)
            return Generated(text, complete, tokens, len(work.written), asked.prompt.truncated)

        return await self._ask(tokenize, work, read, deadline_s)

    @override
    def trouble(self) -> str:
        return self._supervisor.trouble

    @override
    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._queue.fail_all(_CLOSED)
        self._working.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._working
        await self._supervisor.close()
        self._thread.shutdown(wait=False)

    async def _ask(
        self,
        tokenize: Callable[[], _Asked],
        new_work: Callable[[_Asked], Work],
        read: Callable[[_Asked, RowResult, Work], A],
        deadline_s: float | None,
    ) -> JudgeReply[A]:
        timing = Timing()
        work: Work | None = None
        try:
            async with asyncio.timeout_at(deadline_s):
                begin_s = self._loop.time()
                self._check()
                asked = await self._loop.run_in_executor(self._thread, tokenize)
                timing.tokenize_s = self._loop.time() - begin_s
                self._check()
                work = new_work(asked)
                self._queue.push(work)
                self._arrived.set()
                result = await work.done
        except (TimeoutError, _RefusedError, PromptTooLongError, LabelsError) as error:
            return JudgeReply(_failure(error), Source.COMPUTED, timing)
        finally:
            if work is not None:
                timing.queue_s, timing.inference_s = work.queue_s, work.inference_s
        answer = result if isinstance(result, Failure) else read(asked, result, work)
        return JudgeReply(answer, Source.COMPUTED, timing)

    def _check(self) -> None:
        if self._closed:
            raise _RefusedError(_CLOSED)
        if self._supervisor.hopeless:
            raise _RefusedError(self._lost("the judge cannot be restarted"))

    def _choice(self, asked: _Asked) -> Work:
        return self._new_work(asked, labels=asked.labels)

    def _new_work(
        self,
        asked: _Asked,
        *,
        labels: tuple[int, ...] = (),
        max_tokens: int = 0,
        ended: Callable[[Sequence[int]], bool] = bool,
    ) -> Work:
        done: asyncio.Future[RowResult | Failure] = self._loop.create_future()
        return Work(
            asked.prompt.fixed,
            asked.prompt.item,
            done,
            self._loop.time(),
            labels=labels,
            max_tokens=max_tokens,
            ended=ended,
        )

    def _lost(self, what: str) -> Failure:
        return Failure(
            Status.UNAVAILABLE, f"{what}: {self._supervisor.trouble}", retry_after_s=self._supervisor.retry_after_s
        )

    async def _work(self) -> None:
        while True:
            if not await self._supervisor.wait():
                self._queue.fail_all(self._lost("the judge cannot be restarted"))
                await self._supervisor.back()
            if self._starts != self._supervisor.starts:
                self._starts = self._supervisor.starts
                self._queue.start_over()
            planned = self._queue.plan()
            if planned is None:
                self._arrived.clear()
                await self._arrived.wait()
                continue
            try:
                await self._run(planned)
            except Exception:  # noqa: BLE001 - a defect of ours must not leave everybody waiting for ever
                _log.exception("the judge's scheduling failed")
                for work in planned.works:
                    work.fail(_DEFECT)
                self._queue.fail_all(_DEFECT)
                self._queue.start_over()  # states that nobody is sure of are never used again

    async def _run(self, planned: Planned) -> None:
        begin_s = self._loop.time()
        for work in planned.works:
            work.begun_s = work.begun_s or begin_s
        try:
            results = await self._supervisor.run(planned.run)
        except WorkerLostError:
            self._queue.lost(planned, self._lost("the judge died over a run with this item in it"))
            return
        except asyncio.CancelledError:
            for work in planned.works:
                work.fail(_CLOSED)
            raise
        duration_s = self._loop.time() - begin_s
        decoded = 0
        for work, row, result in zip(planned.works, planned.run.rows, results, strict=False):
            decoded += work.computed == len(work.item)
            work.inference_s += duration_s
            work.take(row, result)
        self._queue.computed(planned)
        tokens = planned.run.tokens
        reused = len(planned.prefix.ids) * planned.begins if planned.prefix and planned.works else 0
        self._observer.ran(
            ModelRun(len(planned.run.rows), tokens - decoded, decoded, reused, duration_s, self._queue.waiting)
        )


def _failure(error: Exception) -> Failure:
    match error:
        case _RefusedError():
            return error.failure
        case FixedTooLongError():
            return Failure(Status.INVALID_PARAMETER, f"prompt: {error}")
        case PromptTooLongError():
            return Failure(Status.INVALID_INPUT, str(error))
        case LabelsError():
            return Failure(Status.INVALID_PARAMETER, str(error))
        case _:
            return _TOO_LATE
