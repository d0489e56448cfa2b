"""The program runner, which combines the needs of many programs into port calls."""

import asyncio
import logging
import traceback
from collections import deque
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeAlias, TypeVar

from gradewire_proto.tracing.spans import CORPUS, PREPARED, current_span
from gradewire_server.domain.items import Failure, Status
from gradewire_server.domain.judge import Choose, Generate, JudgeNeed
from gradewire_server.domain.needs import (
    Answer,
    CorpusStatistics,
    DocumentFrequencies,
    Embed,
    EmbedRoughly,
    EmbedTokens,
    FindSynonyms,
    Grade,
    Need,
    PreparedAnswers,
    PreparedSynthetic,
    Tier,
)
from gradewire_server.domain.ports import Ports
from gradewire_server.loop_turns import LoopSlice, LoopTurns
from gradewire_server.scoring.calls import (
    AnyRun,
    CountCorpus,
    Done,
    EmbedCall,
    GradeCall,
    JudgeCall,
    K,
    LookupCall,
    PortCall,
    ProgramRun,
    R,
    SynonymsCall,
    TokensCall,
)

MAX_TEXTS_PER_CALL = 2048
"""The runner sends its open calls when they contain this many texts in total."""
MAX_CALLS = 8
"""The runner starts no more programs while this many calls are running."""
MAX_JUDGE_CALLS = 64
"""The maximum number of running judge calls in a request."""
DEFECT = Failure(Status.INTERNAL, "the server has a defect; its log has the details")

_NO_SET: Final = Failure(
    Status.NOT_PREPARED,
    "reference_set: is missing; prepare a set with synthetic answers (References.Prepare), and set reference_set to "
    "its name",
)

logger = logging.getLogger(__name__)
C = TypeVar("C", bound=PortCall[Any])

Programs: TypeAlias = Iterable[tuple[K, Generator[tuple[Need, ...], tuple[Answer, ...], R]]]
"""(key for `done`, program) pairs."""


async def no_corpus(need: CorpusStatistics) -> DocumentFrequencies | Failure:
    """Return INVALID_PARAMETER."""
    return Failure(Status.INVALID_PARAMETER, f"corpus: must not be {need.corpus} in this call")


@dataclass(frozen=True, slots=True)
class _Returned(Generic[R]):
    result: R | Failure


class ProgramRunner(Generic[K, R]):
    """A runner for one request's programs. Call `run` once.

    Deadlines are in `time.monotonic()` seconds, or None. `judge_deadline_s` is for judges and defaults to `deadline_s`.
    """

    def __init__(  # noqa: PLR0913 - two collaborators, the set, and four optional settings
        self,
        ports: Ports,
        done: Done[K, R],
        *,
        reference_set: str,
        deadline_s: float | None,
        judge_deadline_s: float | None = None,
        count_corpus: CountCorpus = no_corpus,
        turns: LoopTurns | None = None,
    ) -> None:
        self._ports = ports
        self._done = done
        self._reference_set = reference_set
        self._deadline_s = deadline_s
        self._judge_deadline_s = deadline_s if judge_deadline_s is None else judge_deadline_s
        self._count_corpus = count_corpus
        self._open: dict[Hashable, Any] = {}
        self._running: dict[asyncio.Task[Failure | None], PortCall[Any]] = {}
        self._ended: deque[asyncio.Task[Failure | None]] = deque()
        self._wake: asyncio.Future[None] | None = None
        self._judging: dict[JudgeNeed, JudgeCall] = {}
        self._held: deque[JudgeCall] = deque()
        self._slice = LoopSlice(turns or LoopTurns())
        self._is_large: Callable[[K], bool] = lambda _: False

    async def run(
        self,
        programs: Programs[K, R],
        *,
        judged: Programs[K, R] = (),
        is_large: Callable[[K], bool] = lambda _: False,
    ) -> None:
        """Run all programs, first `programs` and then `judged`. Cancelling this call also cancels the port calls.

        If `is_large(key)` is True, the program runs on a thread.
        """
        self._is_large = is_large
        self._slice.start()
        waiting = iter(judged)
        try:
            for key, program in programs:
                await self._resume(ProgramRun(key, program), None)
                if sum(len(call) * call.weight for call in self._open.values()) >= MAX_TEXTS_PER_CALL:
                    self._send_open_calls()
                    while len(self._running) - len(self._judging) >= MAX_CALLS:
                        await self._receive()
            await self._start_judged(waiting)
            while self._open or self._running:
                if len(self._open) == 1 and not self._running:
                    # Usually, there is only one call, which needs no task.
                    _, call = self._open.popitem()
                    await self._deliver(call, await self._ask(call))
                else:
                    self._send_open_calls()
                    await self._receive()
                await self._start_judged(waiting)
        finally:
            for task in self._running:
                task.cancel()
            await asyncio.gather(*self._running, return_exceptions=True)

    async def _start_judged(
        self, waiting: Iterator[tuple[K, Generator[tuple[Need, ...], tuple[Answer, ...], R]]]
    ) -> None:
        while len(self._judging) < MAX_JUDGE_CALLS and (next_one := next(waiting, None)) is not None:
            self._send_open_calls()
            await self._resume(ProgramRun(*next_one), None)

    async def _resume(self, run: ProgramRun[K, R], answers: tuple[Answer, ...] | None) -> None:
        """Run a program until its next needs or its end, then let other tasks run. `answers` is None at the start."""
        is_large = self._is_large(run.key)
        next_round = await self._on_thread(run, answers) if is_large else self._advance(run, answers)
        while next_round == ():  # a round without needs is a pause in a long computation
            await self._slice.give_way()
            next_round = await self._on_thread(run, ()) if is_large else self._advance(run, ())
        if isinstance(next_round, _Returned):
            self._done(run.key, next_round.result, run.cost)
        else:
            needs = next_round
            run.answers = [DEFECT] * len(needs)
            run.missing = len(needs)
            for slot, need in enumerate(needs):
                self._add(run, slot, need)
        if self._slice.is_over:
            await self._slice.give_way()

    async def _on_thread(
        self, run: ProgramRun[K, R], answers: tuple[Answer, ...] | None
    ) -> "tuple[Need, ...] | _Returned[R]":
        return await asyncio.to_thread(self._advance, run, answers)

    def _advance(self, run: ProgramRun[K, R], answers: tuple[Answer, ...] | None) -> "tuple[Need, ...] | _Returned[R]":
        """Return the program's next needs or its result. Thread-safe."""
        try:
            return run.program.send(answers)  # type: ignore[arg-type] # types cannot express "None the first time"
        except StopIteration as stop:
            return _Returned(stop.value)
        except Exception as error:  # noqa: BLE001 - a metric's defect must not affect other metrics
            _log_defect(getattr(run.program, "__qualname__", "a metric"), error)
            return _Returned(DEFECT)

    def _add(self, run: AnyRun, slot: int, need: Need) -> None:
        if isinstance(need, Embed):
            model = need.model
            self._call((Embed, model), lambda: EmbedCall(model)).add(run, slot, need.texts, need.tier)
        elif isinstance(need, EmbedRoughly):
            model = need.model
            rough = self._call((EmbedRoughly, model), lambda: EmbedCall(model, roughly=True))
            rough.add(run, slot, need.texts, Tier.WINDOW)
        elif isinstance(need, EmbedTokens):
            model, layer = need.model, need.layer
            call = self._call((EmbedTokens, model, layer), lambda: TokensCall(model, layer))
            call.add(run, slot, need.texts, need.tier)
        elif isinstance(need, Grade):
            model = need.model
            self._call((Grade, model), lambda: GradeCall(model)).add(run, slot, need.items, Tier.PREDICTION)
        elif isinstance(need, PreparedSynthetic):
            found = self._call(PreparedSynthetic, lambda: LookupCall(PREPARED, self._find_prepared))
            found.add(run, slot, (need,), Tier.REFERENCE)
        elif isinstance(need, CorpusStatistics):
            counted = self._call(CorpusStatistics, lambda: LookupCall(CORPUS, self._count_corpus))
            counted.add(run, slot, (need,), Tier.REFERENCE)
        elif isinstance(need, FindSynonyms):
            self._call(FindSynonyms, SynonymsCall).add(run, slot, need.words, Tier.PREDICTION)
        elif isinstance(need, Choose | Generate):
            self._judge_call(need).add(run, slot, (need,), Tier.PREDICTION)

    async def _find_prepared(self, need: PreparedSynthetic) -> PreparedAnswers | Failure:
        if not self._reference_set:
            return _NO_SET
        return await self._ports.reference_sets.prepared_answers(self._reference_set, need.question, need.references)

    def _judge_call(self, need: JudgeNeed) -> JudgeCall:
        call = self._judging.get(need)
        if call is None:
            call = self._judging[need] = JudgeCall(need)
            self._held.append(call)
            self._send_judge_calls()
        return call

    def _send_judge_calls(self) -> None:
        while self._held and len(self._judging) - len(self._held) < MAX_JUDGE_CALLS:
            call = self._held.popleft()
            self._start_call(call)

    def _start_call(self, call: PortCall[Any]) -> None:
        task = asyncio.create_task(self._ask(call))
        self._running[task] = call
        task.add_done_callback(self._note_end)

    def _note_end(self, task: asyncio.Task[Failure | None]) -> None:
        self._ended.append(task)
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    def _call(self, key: Hashable, make: Callable[[], C]) -> C:
        call: C | None = self._open.get(key)
        if call is None:
            call = self._open[key] = make()
        return call

    def _send_open_calls(self) -> None:
        for call in self._open.values():
            self._start_call(call)
        self._open.clear()

    async def _receive(self) -> None:
        """Wait until a call has ended, and resume the programs that were waiting for this call."""
        if not self._ended:  # asyncio.wait would look at each running call again whenever one ends
            self._wake = asyncio.get_running_loop().create_future()
            await self._wake
        finished = list(self._ended)
        self._ended.clear()
        for task in finished:
            call = self._running.pop(task)
            if isinstance(call, JudgeCall):
                del self._judging[call.need]
                self._send_judge_calls()
            await self._deliver(call, task.result())

    async def _ask(self, call: PortCall[Any]) -> Failure | None:
        try:
            deadline_s = self._judge_deadline_s if isinstance(call, JudgeCall) else self._deadline_s
            if (span := current_span()) is None:
                await call.ask(self._ports, deadline_s=deadline_s)
            else:
                with span.child(call.span_name, call.needs()) as part:
                    await call.ask(self._ports, deadline_s=deadline_s)
                    call.record(part)
        except Exception as error:  # noqa: BLE001 - a defect in a backend must not affect other calls
            _log_defect(type(call).__name__, error)
            return DEFECT
        return None

    async def _deliver(self, call: PortCall[Any], failure: Failure | None) -> None:
        self._slice.start()
        for run in call.fail(failure) if failure else call.deliver():
            await self._resume(run, tuple(run.answers))


def _log_defect(where: str, error: Exception) -> None:
    # Do not log the error's message, because it may contain a user's text.
    frames = "".join(traceback.format_tb(error.__traceback__))
    logger.error("%s raised %s\n%s", where, type(error).__qualname__, frames)
