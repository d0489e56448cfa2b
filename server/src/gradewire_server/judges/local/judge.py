"""A judge of this machine: prompts become tokens here, and tokens an answer; a worker process computes in between."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from typing_extensions import override

from gradewire_models.judges import BuiltJudge, Form
from gradewire_proto.tracing.spans import JUDGE_RUN, PROCESS_PID, TOKENS, record_batch
from gradewire_server.domain.items import Failure, Status, Timing
from gradewire_server.domain.judge import Choice, Choose, Generate, Generated, JudgePrompt, Role, Turn
from gradewire_server.domain.needs import AnswerSource
from gradewire_server.domain.ports import A, JudgeReply, ModelStatus
from gradewire_server.judges.backend import Judge, JudgeUnavailableError, LocalJudgeObserver, ModelRun
from gradewire_server.judges.local.chat import (
    ChatTokenizer,
    FixedTooLongError,
    LabelsError,
    PromptTokens,
    PromptTooLongError,
    open_chat_tokenizer,
)
from gradewire_server.judges.local.queue import EmbeddedQueue, Planned, QueueLimits, Work
from gradewire_server.judges.local.supervisor import WorkerLostError, WorkerSupervisor, WorkerTimeouts
from gradewire_server.judges.texts import TextEnd
from gradewire_server.judges.worker.messages import OpenModel, RowResult
from gradewire_server.settings.judge import EmbeddedJudgeConfig

_log = logging.getLogger(__name__)
_CLOSED: Final = Failure(Status.UNAVAILABLE, "the judge is being closed")
_DEFECT: Final = Failure(Status.INTERNAL, "the judge's scheduling failed; the server's log says why")


class RunLoop:
    """Plans a run, has the worker compute it, hands out the results, and so on. Lives on the event loop it was made on.

    Args:
        supervisor: Of the worker, which is started; closed with this.
        queue: Empty.
        observer: Hears of the runs.
    """

    def __init__(self, supervisor: WorkerSupervisor, queue: EmbeddedQueue, observer: LocalJudgeObserver) -> None:
        self._supervisor = supervisor
        self._queue = queue
        self._observer = observer
        self._loop = asyncio.get_running_loop()
        self._arrived = asyncio.Event()
        self._starts = supervisor.starts
        self._closed = False
        self._computing = self._loop.create_task(self._compute_all())

    @property
    def waiting(self) -> int:
        """How much work has not begun."""
        return self._queue.waiting

    @property
    def worker_pid(self) -> int | None:
        """The process that computes; None while there is none."""
        return self._supervisor.pid

    @property
    def trouble(self) -> str:
        """Why there is no worker now; empty when there is one."""
        return self._supervisor.trouble

    def refusal(self) -> Failure | None:
        """Why work cannot be computed, however long one waits; None when it can."""
        if self._closed:
            return _CLOSED
        if self._supervisor.gave_up:
            return self._lost("the judge cannot be restarted")
        return None

    async def compute(self, work: Work) -> RowResult | Failure:
        """The last result of a piece of work. Cancelled, the work is left out of all later runs."""
        refusal = self.refusal()
        if refusal is not None:
            return refusal
        self._queue.push(work)
        self._arrived.set()
        return await work.done

    async def close(self) -> None:
        """Fails what waits and ends the worker."""
        self._closed = True
        self._queue.fail_all(_CLOSED)
        self._computing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._computing
        await self._supervisor.close()

    async def _compute_all(self) -> None:
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
        begin_s, begin_ns = self._loop.time(), time.time_ns()
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
        self._trace(planned, begin_ns)
        decoded = 0
        for work, row, result in zip(planned.works, planned.run.rows, results, strict=False):
            decoded += work.computed == len(work.item)
            work.inference_s += duration_s
            work.take(row, result)
        self._queue.computed(planned)
        tokens = planned.run.tokens
        reused = len(planned.prefix.ids) * planned.begins if planned.prefix and planned.works else 0
        self._observer.ran(ModelRun(len(planned.run.rows), tokens - decoded, decoded, reused, duration_s))

    def _trace(self, planned: Planned, begin_ns: int) -> None:
        """Tells the traces of all who wait for a run of it; the worker itself exports nothing."""
        record_batch(
            JUDGE_RUN,
            (work.span for work in planned.works),
            start_ns=begin_ns,
            end_ns=time.time_ns(),
            attributes={TOKENS: planned.run.tokens, PROCESS_PID: self.worker_pid or 0},
        )

    def _lost(self, what: str) -> Failure:
        supervisor = self._supervisor
        return Failure(Status.UNAVAILABLE, f"{what}: {supervisor.trouble}", retry_after_s=supervisor.retry_after_s)


_NO_TOKENS: Final = Failure(Status.INVALID_PARAMETER, "max_tokens has to be at least 1")
_TOO_LATE: Final = Failure(Status.TIMEOUT, "the judge was not done by the deadline")


@dataclass(frozen=True, slots=True)
class _Tokenized:
    """A need as token ids; attributes as those of `Work`."""

    prompt: PromptTokens
    labels: tuple[int, ...] = ()
    max_tokens: int = 0
    ended: Callable[[Sequence[int]], bool] = bool

    @property
    def prompt_tokens(self) -> int:
        return len(self.prompt.fixed) + len(self.prompt.item)


class EmbeddedJudge(Judge):
    """A judge of this machine. Lives on the event loop it was made on.

    Args:
        status: How it is shown.
        tokenizer: Its tokenizer and chat template.
        runs: Computes; closed with this.
    """

    def __init__(self, status: ModelStatus, tokenizer: ChatTokenizer, runs: RunLoop) -> None:
        self._status = status
        self._tokenizer = tokenizer
        self._runs = runs
        # One thread: a megabyte of text keeps the loop free, and needs stay in the order in which they came.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"tokenize-{status.name}")
        self._closed = False

    @property
    @override
    def status(self) -> ModelStatus:
        return self._status

    @property
    def waiting(self) -> int:
        """Needs that have not begun."""
        return self._runs.waiting

    @property
    def worker_pid(self) -> int | None:
        """The process that computes; None while there is none."""
        return self._runs.worker_pid

    @override
    async def choose(self, need: Choose, *, deadline_s: float | None = None) -> JudgeReply[Choice]:
        def tokenize() -> _Tokenized:
            labels = self._tokenizer.labels(need.prompt.opening, need.options)
            return _Tokenized(self._tokenizer.prompt(need.prompt, labels.shared), labels.tokens)

        def read(asked: _Tokenized, result: RowResult, _: Sequence[int]) -> Choice:
            return Choice(result.probabilities, result.mass, asked.prompt_tokens, asked.prompt.truncated)

        return await self._ask(tokenize, read, deadline_s)

    @override
    async def generate(self, need: Generate, *, deadline_s: float | None = None) -> JudgeReply[Generated]:
        if need.max_tokens < 1:
            return JudgeReply(_NO_TOKENS, AnswerSource.COMPUTED, Timing())
        end = TextEnd(self._tokenizer.text, self._tokenizer.ends, need.stop)

        def tokenize() -> _Tokenized:
            opening = self._tokenizer.opening(need.prompt.opening)
            prompt = self._tokenizer.prompt(need.prompt, opening, answer_tokens=need.max_tokens)
            return _Tokenized(prompt, max_tokens=need.max_tokens, ended=end.reached)

        def read(asked: _Tokenized, _: RowResult, written: Sequence[int]) -> Generated:
            text, complete = end.read(written)
            return Generated(text, complete, asked.prompt_tokens, len(written), asked.prompt.truncated)

        return await self._ask(tokenize, read, deadline_s)

    @override
    def trouble(self) -> str:
        return self._runs.trouble

    @override
    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        await self._runs.close()
        self._thread.shutdown(wait=False)

    async def _ask(
        self,
        tokenize: Callable[[], _Tokenized],
        read: Callable[[_Tokenized, RowResult, Sequence[int]], A],
        deadline_s: float | None,
    ) -> JudgeReply[A]:
        timing = Timing()
        refusal = self._runs.refusal()
        if refusal is not None:
            return JudgeReply(refusal, AnswerSource.COMPUTED, timing)
        loop = asyncio.get_running_loop()
        work: Work | None = None
        try:
            async with asyncio.timeout_at(deadline_s):
                begin_s = loop.time()
                asked = await loop.run_in_executor(self._thread, tokenize)
                timing.tokenize_s = loop.time() - begin_s
                work = _work(asked, loop)
                result = await self._runs.compute(work)
        except (TimeoutError, PromptTooLongError, LabelsError) as error:
            return JudgeReply(_failure(error), AnswerSource.COMPUTED, timing)
        finally:
            if work is not None:
                timing.queue_s, timing.inference_s = work.queue_s, work.inference_s
        answer = result if isinstance(result, Failure) else read(asked, result, work.written)
        return JudgeReply(answer, AnswerSource.COMPUTED, timing)


def _work(asked: _Tokenized, loop: asyncio.AbstractEventLoop) -> Work:
    return Work(
        asked.prompt.fixed,
        asked.prompt.item,
        loop.create_future(),
        loop.time(),
        labels=asked.labels,
        max_tokens=asked.max_tokens,
        ended=asked.ended,
    )


def _failure(error: Exception) -> Failure:
    match error:
        case FixedTooLongError():
            return Failure(Status.INVALID_PARAMETER, f"prompt: {error}")
        case PromptTooLongError():
            return Failure(Status.INVALID_INPUT, str(error))
        case LabelsError():
            return Failure(Status.INVALID_PARAMETER, str(error))
        case _:
            return _TOO_LATE


_WARM_UP = JudgePrompt((Turn(Role.SYSTEM, "Answer."),), "Ready?")


async def open_judge(
    status: ModelStatus, built: BuiltJudge, form: Form, config: EmbeddedJudgeConfig, observer: LocalJudgeObserver
) -> EmbeddedJudge:
    """Opens a judge and has it answer once.

    Args:
        status: How it is shown.
        built: Its files.
        form: Which of its forms runs.
        config: How it is run.
        observer: Hears of its runs.

    Raises:
        ModelRefusedError: The worker cannot open the model, or (LibraryMissingError) lacks what would compute it.
        WorkerLostError: The worker ended, or was not ready in time.
        JudgeUnavailableError: It does not answer.
        OSError, ValueError: The tokenizer cannot be read, or the chat template is not known.
    """
    tokenizer = await asyncio.to_thread(open_chat_tokenizer, built, config)
    context_tokens = tokenizer.limits.context
    model = OpenModel(
        form=form,
        path=str(built.onnx_path if form == "int8" else built.gguf_path),
        threads=config.threads,
        context_tokens=context_tokens,
        max_states=config.max_prefix_states,
        nice=config.nice,
    )
    supervisor = WorkerSupervisor(
        model,
        WorkerTimeouts(config.start_timeout_s, config.run_timeout_s, config.token_timeout_s),
        restarted=observer.restarted,
    )
    await supervisor.start()
    queue = EmbeddedQueue(
        QueueLimits(
            max_run_tokens=config.max_batch_tokens,
            max_growing=config.max_sequences,
            max_growing_tokens=context_tokens,
            max_prefixes=config.max_prefix_states,
            max_prefix_tokens=config.max_prefix_tokens,
        ),
        supervisor.limits,
    )
    judge = EmbeddedJudge(status, tokenizer, RunLoop(supervisor, queue, observer))
    try:
        await _warm_up(judge)
    except BaseException:
        await judge.close()
        raise
    return judge


async def _warm_up(judge: EmbeddedJudge) -> None:
    # Its first run allocates and packs memory: no caller is to wait for that, nor for a judge that cannot answer.
    reply = await judge.generate(Generate("", _WARM_UP, max_tokens=2))
    if isinstance(reply.answer, Failure):
        raise JudgeUnavailableError(reply.answer)
