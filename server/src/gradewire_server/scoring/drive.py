"""Runs many generators at once: merges their open needs into engine calls and resumes each as soon as it can go on."""

import asyncio
import logging
import time
import traceback
from collections.abc import Generator, Iterable
from typing import Any, Generic

from gradewire_server.domain.engine import Engine
from gradewire_server.domain.needs import (
    Answer,
    CorpusStatistics,
    DocumentFrequencies,
    Embed,
    EmbedTokens,
    FindSynonyms,
    Need,
    PreparedSynthetic,
    Tier,
)
from gradewire_server.domain.result import Failure, Status
from gradewire_server.scoring.calls import (
    AnyJob,
    Call,
    CountCorpus,
    EmbedCall,
    PreparedCall,
    StatisticsCall,
    SynonymsCall,
    TokensCall,
)
from gradewire_server.scoring.jobs import Done, Job, K, R

MAX_TEXTS_PER_CALL = 2048
"""Open texts at which calls are sent off while further generators are started; bounds the vectors held at a time."""
MAX_CALLS = 8
"""Calls under way at which starting further generators waits; those that are started never wait for each other."""
SLICE_S = 0.002
"""Seconds of Python work after which other tasks of the event loop get their turn."""
DEFECT = Failure(Status.INTERNAL, "a defect of the server; its log has the details")

logger = logging.getLogger(__name__)


async def no_corpus(need: CorpusStatistics) -> DocumentFrequencies | Failure:
    """Answers where nothing is scored, so that there is nothing to weigh."""
    return Failure(Status.INVALID_PARAMETER, f"corpus: a {need.corpus} corpus cannot be counted here")


class Drive(Generic[K, R]):
    """One run over generators of one request; for `run` to be called once.

    Args:
        engine: Answers the needs.
        done: Told of each generator as it ends.
        reference_set: Where prepared synthetic answers are looked up; empty: nowhere.
        deadline_s: In `time.monotonic()` seconds, for the engine; None: no deadline.
        count_corpus: Answers CorpusStatistics.
    """

    def __init__(
        self,
        engine: Engine,
        done: Done[K, R],
        *,
        reference_set: str,
        deadline_s: float | None,
        count_corpus: CountCorpus = no_corpus,
    ) -> None:
        self._engine = engine
        self._done = done
        self._reference_set = reference_set
        self._deadline_s = deadline_s
        self._count_corpus = count_corpus
        self._open: dict[tuple[type[Need], str, int], Call[Any]] = {}
        self._running: dict[asyncio.Task[Failure | None], Call[Any]] = {}
        self._slice_end_s = 0.0

    async def run(self, programs: Iterable[tuple[K, Generator[tuple[Need, ...], tuple[Answer, ...], R]]]) -> None:
        """Runs all programs to their end, in no particular order. Cancelling it cancels its engine calls."""
        self._start_slice()
        try:
            for key, program in programs:
                self._resume(Job(key, program), None)
                await self._give_way()
                if sum(len(call) * call.weight for call in self._open.values()) >= MAX_TEXTS_PER_CALL:
                    self._send()
                    while len(self._running) >= MAX_CALLS:
                        await self._receive()
            while self._open or self._running:
                if len(self._open) == 1 and not self._running:
                    # The usual request: nothing runs beside this call, so it needs no task of its own.
                    _, call = self._open.popitem()
                    await self._deliver(call, await self._ask(call))
                else:
                    self._send()
                    await self._receive()
        finally:
            for task in self._running:
                task.cancel()
            await asyncio.gather(*self._running, return_exceptions=True)

    def _resume(self, job: Job[K, R], answers: tuple[Answer, ...] | None) -> None:
        """Takes a generator to its next round, or to its end; None starts it."""
        try:
            needs = job.program.send(answers)  # type: ignore[arg-type] # typing has no word for "None the first time"
            while not needs:
                needs = job.program.send(())
        except StopIteration as stop:
            self._done(job.key, stop.value, job.cost)
        except Exception as error:  # noqa: BLE001 - one metric's defect must not take its neighbours along
            _log_defect(getattr(job.program, "__qualname__", "a metric"), error)
            self._done(job.key, DEFECT, job.cost)
        else:
            job.answers = [DEFECT] * len(needs)
            job.missing = len(needs)
            for slot, need in enumerate(needs):
                self._add(job, slot, need)

    def _add(self, job: AnyJob, slot: int, need: Need) -> None:
        if isinstance(need, Embed):
            self._call(Embed, need.model).add(job, slot, need.texts, need.tier)
        elif isinstance(need, EmbedTokens):
            self._call(EmbedTokens, need.model, need.layer).add(job, slot, need.texts, need.tier)
        elif isinstance(need, PreparedSynthetic):
            self._call(PreparedSynthetic, "").add(job, slot, ((need.question, need.references),), Tier.REFERENCE)
        elif isinstance(need, CorpusStatistics):
            self._call(CorpusStatistics, "").add(job, slot, (need,), Tier.REFERENCE)
        elif isinstance(need, FindSynonyms):
            self._call(FindSynonyms, "").add(job, slot, need.words, Tier.PREDICTION)

    def _call(self, kind: type[Need], model: str, layer: int = 0) -> Call[Any]:
        call = self._open.get((kind, model, layer))
        if call is None:
            if kind is Embed:
                call = EmbedCall(model)
            elif kind is EmbedTokens:
                call = TokensCall(model, layer)
            elif kind is CorpusStatistics:
                call = StatisticsCall(self._count_corpus)
            elif kind is FindSynonyms:
                call = SynonymsCall()
            else:
                call = PreparedCall(self._reference_set)
            self._open[kind, model, layer] = call
        return call

    def _send(self) -> None:
        """Sends off all open calls."""
        for call in self._open.values():
            self._running[asyncio.create_task(self._ask(call))] = call
        self._open.clear()

    async def _receive(self) -> None:
        """Waits for one call at least, and resumes those who waited for it."""
        finished, _ = await asyncio.wait(self._running, return_when=asyncio.FIRST_COMPLETED)
        for task in finished:
            await self._deliver(self._running.pop(task), task.result())

    async def _ask(self, call: Call[Any]) -> Failure | None:
        try:
            await call.ask(self._engine, deadline_s=self._deadline_s)
        except Exception as error:  # noqa: BLE001 - engines answer with failures; one that raises fails this call alone
            _log_defect("Engine", error)
            return DEFECT
        return None

    async def _deliver(self, call: Call[Any], failure: Failure | None) -> None:
        self._start_slice()
        for job in call.fail(failure) if failure else call.deliver():
            self._resume(job, tuple(job.answers))
            await self._give_way()

    def _start_slice(self) -> None:
        self._slice_end_s = time.perf_counter() + SLICE_S

    async def _give_way(self) -> None:
        if time.perf_counter() > self._slice_end_s:
            await asyncio.sleep(0)
            self._start_slice()


def _log_defect(where: str, error: Exception) -> None:
    """Where it happened and the kind of error; not its message, which may hold a user's text."""
    frames = "".join(traceback.format_tb(error.__traceback__))
    logger.error("%s raised %s\n%s", where, type(error).__qualname__, frames)
