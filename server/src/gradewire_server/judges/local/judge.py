"""Judges on this machine, which compute in a worker process."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib.util import find_spec
from typing import Any, Final

from typing_extensions import override

from gradewire_models.errors import ModelError
from gradewire_models.judges.catalog import CatalogJudge, Form, catalog_judges
from gradewire_models.judges.cores.rows import PADDED_FORMS, RowResult
from gradewire_models.judges.repository import BuiltJudge, list_judges, load_judge
from gradewire_models.processor import computes_int8
from gradewire_proto.tracing.spans import JUDGE_RUN, PROCESS_PID, TOKENS, record_batch
from gradewire_server.domain.items import Failure, Status, Timing
from gradewire_server.domain.judge import (
    Choice,
    Choose,
    Generate,
    Generated,
    JudgeAnswer,
    JudgeNeed,
    JudgePrompt,
    Role,
    Turn,
)
from gradewire_server.domain.needs import AnswerSource
from gradewire_server.domain.ports import JudgeReply, ModelStatus
from gradewire_server.judges.backend import NO_TOKENS, Judge, JudgeBackend, JudgeUnavailableError, failed_reply
from gradewire_server.judges.local.chat import ChatTokenizer, PromptError, PromptTokens, TextEnd, open_chat_tokenizer
from gradewire_server.judges.local.queue import EmbeddedQueue, Planned, Work
from gradewire_server.judges.local.supervisor import (
    LibraryMissingError,
    ModelRefusedError,
    WorkerLostError,
    WorkerSupervisor,
)
from gradewire_server.judges.prometheus import JudgeTelemetry
from gradewire_server.judges.worker.messages import OpenModel
from gradewire_server.settings.judge import EmbeddedJudgeConfig

_log = logging.getLogger(__name__)
_NEEDS_GGUF: Final = "is built only as int8 for x86 processors, but this processor needs the form gguf"
_NEEDS_LLAMA: Final = "runs as gguf here, but llama.cpp is not installed (or cannot be loaded)"
_INSTALL: Final = "pip install 'gradewire[judge]'"
_CLOSED: Final = Failure(Status.UNAVAILABLE, "the judge is being closed")
_DEFECT: Final = Failure(Status.INTERNAL, "the judge's scheduling failed. See the server's log")
_TOO_LATE: Final = Failure(Status.TIMEOUT, "the judge was not done before the deadline")
_WARM_UP: Final = Generate("", JudgePrompt((Turn(Role.SYSTEM, "Answer."),), "Ready?"), max_tokens=2)


class EmbeddedJudge(Judge):
    """A judge on this machine. Only for the event loop that created the judge.

    `supervisor` must be started. `close` also closes `supervisor`.
    """

    def __init__(
        self,
        status: ModelStatus,
        tokenizer: ChatTokenizer,
        supervisor: WorkerSupervisor,
        queue: EmbeddedQueue,
        telemetry: JudgeTelemetry,
    ) -> None:
        self._status = status
        self._tokenizer = tokenizer
        # A separate thread keeps the event loop responsive, and a single thread keeps needs in order.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"tokenize-{status.name}")
        self._supervisor = supervisor
        self._queue = queue
        self._telemetry = telemetry
        self._loop = asyncio.get_running_loop()
        self._arrived = asyncio.Event()
        self._starts = supervisor.starts
        self._closed = False
        self._computing = self._loop.create_task(self._compute_all())

    @property
    @override
    def status(self) -> ModelStatus:
        return self._status

    @override
    async def answer(self, need: JudgeNeed, *, deadline_s: float | None = None) -> JudgeReply[Any]:
        refusal = NO_TOKENS if isinstance(need, Generate) and need.max_tokens < 1 else self._refusal()
        if refusal is not None:
            return failed_reply(refusal)
        timing = Timing()
        loop = self._loop
        work: Work | None = None
        end = TextEnd(self._tokenizer.text, self._tokenizer.ends, () if isinstance(need, Choose) else need.stop)
        try:
            async with asyncio.timeout_at(deadline_s):
                begin_s = time.monotonic()
                prompt, labels = await loop.run_in_executor(self._thread, self._tokenize, need)
                timing.tokenize_s = time.monotonic() - begin_s
                work = Work(prompt.fixed, prompt.item, loop.create_future(), time.monotonic(), labels=labels)
                if isinstance(need, Generate):
                    work.max_tokens, work.ended = need.max_tokens, end.reached
                result = await self._compute(work)
        except TimeoutError:
            return failed_reply(_TOO_LATE, timing)
        except PromptError as error:
            return failed_reply(Failure(error.status, str(error)), timing)
        finally:
            if work is not None:
                timing.queue_s, timing.inference_s = work.queue_s, work.inference_s
        if isinstance(result, Failure):
            return failed_reply(result, timing)
        read, written = len(prompt.fixed) + len(prompt.item), work.written
        answer: JudgeAnswer
        if isinstance(need, Choose):
            answer = Choice(result.probabilities, result.mass, read, prompt.truncated)
        else:
            text, complete = end.read(written)
            answer = Generated(text, complete, read, len(written), prompt.truncated)
        return JudgeReply(answer, AnswerSource.COMPUTED, timing)

    @override
    def trouble(self) -> str:
        return self._supervisor.trouble

    @override
    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._queue.fail_all(_CLOSED)
        self._computing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._computing
        await self._supervisor.close()
        self._thread.shutdown(wait=False)

    def _tokenize(self, need: JudgeNeed) -> tuple[PromptTokens, tuple[int, ...]]:
        if isinstance(need, Choose):
            return self._tokenizer.question(need.prompt, need.options, 0)
        return self._tokenizer.question(need.prompt, (), need.max_tokens)

    def _refusal(self) -> Failure | None:
        if self._closed:
            return _CLOSED
        return self._lost("the judge cannot be restarted") if self._supervisor.gave_up else None

    async def _compute(self, work: Work) -> RowResult | Failure:
        refusal = self._refusal()
        if refusal is not None:
            return refusal
        self._queue.push(work)
        self._arrived.set()
        return await work.done

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
            except Exception:  # noqa: BLE001 - a defect here must not make callers wait forever
                _log.exception("the judge's scheduling failed")
                for work in planned.works:
                    work.fail(_DEFECT)
                self._queue.fail_all(_DEFECT)
                self._queue.start_over()  # the states may be wrong, so never use them again

    async def _run(self, planned: Planned) -> None:
        begin_s, begin_ns = time.monotonic(), time.time_ns()
        for work in planned.works:
            work.begun_s = work.begun_s or begin_s
        try:
            results = await self._supervisor.run(planned.run)
        except WorkerLostError:
            self._queue.lost(planned, self._lost("the judge's worker died during a run with this item"))
            return
        except asyncio.CancelledError:
            for work in planned.works:
                work.fail(_CLOSED)
            raise
        duration_s = time.monotonic() - begin_s
        self._trace(planned, begin_ns)
        decoded = 0
        for work, row, result in zip(planned.works, planned.run.rows, results, strict=False):
            decoded += work.computed == len(work.item)
            work.inference_s += duration_s
            work.take(row, result)
        self._queue.computed(planned)
        tokens = planned.run.tokens
        reused = len(planned.prefix.ids) * planned.begins if planned.prefix and planned.works else 0
        self._telemetry.ran(
            sequences=len(planned.run.rows),
            prefill_tokens=tokens - decoded,
            decode_tokens=decoded,
            reused_tokens=reused,
            duration_s=duration_s,
        )

    def _trace(self, planned: Planned, begin_ns: int) -> None:
        record_batch(
            JUDGE_RUN,
            (work.span for work in planned.works),
            start_ns=begin_ns,
            end_ns=time.time_ns(),
            attributes={TOKENS: planned.run.tokens, PROCESS_PID: self._supervisor.pid or 0},
        )

    def _lost(self, what: str) -> Failure:
        supervisor = self._supervisor
        return Failure(Status.UNAVAILABLE, f"{what}: {supervisor.trouble}", retry_after_s=supervisor.retry_after_s)


async def open_judge(
    status: ModelStatus, built: BuiltJudge, form: Form, config: EmbeddedJudgeConfig, telemetry: JudgeTelemetry
) -> EmbeddedJudge:
    """Open a judge, and check that the judge answers.

    Raises:
        LibraryMissingError: The worker cannot load the model's library.
        ModelRefusedError: The worker cannot open the model.
        WorkerLostError: The worker ended, or was not ready in time.
        JudgeUnavailableError: The judge does not answer.
        OSError: The tokenizer cannot be read.
        ValueError: The chat template is unknown.
    """
    tokenizer = await asyncio.to_thread(open_chat_tokenizer, built, config)
    context_tokens = tokenizer.limits.context
    model = OpenModel(
        form=form,
        path=str(built.path(form)),
        threads=config.threads,
        context_tokens=context_tokens,
        max_states=config.max_prefix_states,
        nice=config.nice,
        device=config.device,
    )
    supervisor = WorkerSupervisor(model, config, restarted=telemetry.restarted)
    await supervisor.start()
    if config.on_gpu:
        config = replace(config, max_batch_tokens=config.max_gpu_batch_tokens)
    queue = EmbeddedQueue(config, supervisor.limits, context_tokens)
    judge = EmbeddedJudge(status, tokenizer, supervisor, queue, telemetry)
    reply = None
    try:
        # No caller should wait for the first run, which allocates memory, or for a judge that cannot answer.
        reply = await judge.answer(_WARM_UP)
    finally:
        if reply is None or isinstance(reply.answer, Failure):
            await judge.close()
    if isinstance(reply.answer, Failure):
        raise JudgeUnavailableError(reply.answer)
    return judge


class EmbeddedJudges(JudgeBackend):
    """The backend for judges on this machine."""

    def __init__(self, config: EmbeddedJudgeConfig, telemetry: JudgeTelemetry) -> None:
        self._config = config
        self._telemetry = telemetry

    @override
    def listed(self) -> Sequence[ModelStatus]:
        built = [self._built(judge) for judge in list_judges(self._config.repository)]
        names = {status.name for status in built}
        buildable = [judge for judge in catalog_judges().values() if judge.buildable]
        return built + [_missing(judge) for judge in buildable if judge.name not in names]

    @override
    async def open(self, name: str) -> EmbeddedJudge:
        try:
            judge = load_judge(self._config.repository, name)
        except ModelError as error:
            raise _unusable(name, error) from error
        form = self._form(judge)
        if judge.test_only:
            _log.warning("judge %r is for tests only: its verdicts are no better than random", name)
        status = _status(judge, form, "loaded", self._config)
        try:
            return await open_judge(status, judge, form, self._config, self._telemetry)
        except WorkerLostError as error:
            # The loss may be temporary, for example because memory was low.
            raise JudgeUnavailableError(Failure(Status.UNAVAILABLE, str(error), retry_after_s=5.0)) from error
        except LibraryMissingError as error:
            _log.warning("cannot open judge %r: %s", name, error)
            if form in PADDED_FORMS:
                message = f"judge {name!r} cannot run on {self._config.device}: {error}"
                raise JudgeUnavailableError(Failure(Status.MODEL_UNAVAILABLE, message)) from error
            raise _no_form(judge, _NEEDS_LLAMA, f"Run: {_INSTALL}") from error
        except (ModelRefusedError, OSError, ValueError) as error:
            raise _unusable(name, error) from error

    def _built(self, judge: BuiltJudge) -> ModelStatus:
        try:
            return _status(judge, self._form(judge), "built", self._config)
        except JudgeUnavailableError as error:
            unusable = _status(judge, judge.forms[0], "broken", self._config)
            remedy = _INSTALL if _NEEDS_LLAMA in str(error) else judge.build_hint
            return replace(unusable, message=str(error), how_to_get=remedy)

    def _form(self, judge: BuiltJudge) -> Form:
        """Return a form of a judge that this machine can run; raise JudgeUnavailableError if there is no such form."""
        wanted = self._config.form
        usual: list[Form] = ["fp16", "int4"] if self._config.on_gpu else ["int8", "gguf"]
        forms: list[Form] = usual if wanted == "auto" else [wanted]
        there = [form for form in forms if form in judge.forms]
        for form in there:
            if form in PADDED_FORMS or (computes_int8() if form == "int8" else has_llama()):
                return form
        if forms[0] in PADDED_FORMS:
            why = f"has no form {' or '.join(forms)}, which {self._config.device} needs"
            raise _no_form(judge, why, f"Run: {judge.build_hint} --form {forms[0]}")
        if "gguf" in there:
            raise _no_form(judge, _NEEDS_LLAMA, f"Run: {_INSTALL}")
        needed = "gguf" if there else forms[0]
        why = _NEEDS_GGUF if there else f"has no form {needed}"
        raise _no_form(judge, why, f"Run: {judge.build_hint} --form {needed}")


def has_llama() -> bool:
    """Return True if llama.cpp is installed. Do not load the library."""
    return find_spec("xllamacpp") is not None


def _no_form(judge: BuiltJudge, why: str, remedy: str) -> JudgeUnavailableError:
    return JudgeUnavailableError(Failure(Status.MODEL_UNAVAILABLE, f"judge {judge.name!r} {why}. {remedy}"))


def _unusable(name: str, error: Exception) -> JudgeUnavailableError:
    """Return an error for callers, without this machine's paths."""
    _log.warning("cannot open judge %r: %s", name, error)
    verify, build = f"gradewire models verify {name}", f"gradewire models build {name}"
    remedy = f"Run {verify} to see the reason, or {build} to replace the judge"
    return JudgeUnavailableError(Failure(Status.MODEL_UNAVAILABLE, f"judge {name!r} cannot be opened. {remedy}"))


def _status(judge: BuiltJudge, form: Form, state: str, config: EmbeddedJudgeConfig) -> ModelStatus:
    return ModelStatus(
        name=judge.name,
        digest=judge.digests[form],
        state=state,
        max_tokens=min(judge.context_tokens, config.max_context_tokens),
        licence=judge.licence,
        precision=judge.numeric_classes[form],
        kind="judge",
        remarks=judge.remarks,
    )


def _missing(judge: CatalogJudge) -> ModelStatus:
    return ModelStatus(
        name=judge.name,
        digest="",
        state="missing",
        how_to_get=judge.build_hint,
        max_tokens=judge.context_tokens,
        licence=judge.licence,
        kind="judge",
        remarks=judge.remarks,
    )
