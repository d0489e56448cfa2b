"""The judges of an engine: opened when first asked, cached, asked once, bounded, and never believed blindly."""

import asyncio
import logging
import time
from dataclasses import dataclass, replace
from typing import Any, Final

from gradewire_server.domain.judge import Choice, Choose, Generate, Generated
from gradewire_server.domain.needs import Source
from gradewire_server.domain.ports import JudgeReply, ModelStatus
from gradewire_server.domain.result import Failure, Status, Timing
from gradewire_server.judges.library import USABLE, JudgeShelf
from gradewire_server.judges.single_flight import TIMED_OUT, JudgeFlights, Landed
from gradewire_server.judges.source import Judge, JudgeSource
from gradewire_server.judges.telemetry import JudgeTelemetry
from gradewire_server.judges.verdict_codec import JudgeNeed, why_no_answer
from gradewire_server.judges.verdicts import VerdictCache, VerdictKey
from gradewire_server.settings.judge import JudgeConfig

_log = logging.getLogger(__name__)
_DEFECT: Final = Failure(Status.INTERNAL, "the judge failed on this item; the server's log has the details")
_NONSENSE: Final = Failure(Status.INTERNAL, "the judge's answer makes no sense; the server's log says why")


@dataclass(frozen=True, slots=True)
class JudgeHealth:
    """Of the default judge.

    Attributes:
        configured: Whether there is to be one at all.
        ready: Whether it can answer, at once or after it was loaded at its first use.
        trouble: Why it cannot, where somebody wanted it: the operator named or preloads it, or it was in use.
    """

    configured: bool
    ready: bool
    trouble: str = ""


class JudgeService:
    """Answers Choose and Generate. Lives on the event loop it is used on.

    Args:
        source: Where judges come from; closed with this.
        config: See `JudgeConfig`.
        default: Judge that "" stands for.
        verdicts: What is known already.
        telemetry: Where it is counted.
    """

    def __init__(
        self,
        source: JudgeSource,
        config: JudgeConfig,
        verdicts: VerdictCache,
        telemetry: JudgeTelemetry,
        *,
        default: str,
    ) -> None:
        self._config = config
        self._shelf = JudgeShelf(source, default=default)
        self._verdicts = verdicts
        self._telemetry = telemetry
        self._flights = JudgeFlights(max_open=config.max_queue_items)
        self._entering = 0
        self._closed = False
        telemetry.watch(
            queued=lambda: len(self._flights) + self._entering, up=lambda: 1.0 if self.health().ready else 0.0
        )

    async def load(self, name: str = "") -> ModelStatus | Failure:
        """Gets a judge ready, "" being the default one; a failure says how to get it."""
        judge = await self._shelf.get(name)
        return judge if isinstance(judge, Failure) else judge.status

    def load_soon(self) -> None:
        """Begins to get the default judge ready; who asks meanwhile waits for it, and `health` says how it went."""
        self._shelf.open_soon(self._shelf.default)

    async def choose(self, need: Choose, *, deadline_s: float | None = None) -> JudgeReply[Choice]:
        """See `Judges.choose`."""
        landed = await self._answer("choose", need, deadline_s)
        return JudgeReply(landed.answer, landed.source, landed.timing)

    async def generate(self, need: Generate, *, deadline_s: float | None = None) -> JudgeReply[Generated]:
        """See `Judges.generate`."""
        landed = await self._answer("generate", need, deadline_s)
        return JudgeReply(landed.answer, landed.source, landed.timing)

    def statuses(self) -> list[ModelStatus]:
        """See `ModelIndex.statuses`."""
        return self._shelf.statuses()

    def status(self, name: str) -> ModelStatus | Failure:
        """See `ModelIndex.status`."""
        return self._shelf.status(name)

    def health(self) -> JudgeHealth:
        """Whether the default judge works."""
        known = self._shelf.statuses()
        if not known:
            return JudgeHealth(configured=False, ready=False)
        trouble = self._shelf.trouble(self._shelf.default)
        default = next((status for status in known if status.is_default), None)
        there = default is not None and default.state in USABLE
        wanted = there or self._config.preload or bool(self._config.default)
        return JudgeHealth(configured=True, ready=not trouble, trouble=trouble if wanted else "")

    async def close(self) -> None:
        """Fails what waits, writes back what is known, closes the judges and where they come from. Twice is allowed."""
        if self._closed:
            return
        self._closed = True
        await self._flights.close()
        await self._shelf.close()
        await self._verdicts.flush()

    async def _answer(self, kind: str, need: JudgeNeed, deadline_s: float | None) -> Landed:
        landed = await self._look(kind, need, deadline_s)
        if isinstance(landed.answer, Failure):
            self._telemetry.failed(landed.answer.status)
        else:
            self._telemetry.answered(kind, landed.source, landed.timing)
        return landed

    async def _look(self, kind: str, need: JudgeNeed, deadline_s: float | None) -> Landed:
        judge = self._shelf.loaded_one(need.model) or await self._enter(need.model, deadline_s)
        if isinstance(judge, Failure):
            return Landed(judge, Source.COMPUTED, Timing())
        started_s = time.perf_counter()
        status = judge.status
        key = await self._verdicts.key(need, status)
        known = self._verdicts.find(key, need)
        if known is not None:
            return Landed(known, Source.MEMORY, Timing(cache_s=time.perf_counter() - started_s))

        async def work(until_s: float | None) -> Landed:
            return await self._work(kind, judge, need, (key, status.numeric_class), until_s)

        return await self._flights.join(key.name, work, deadline_s=deadline_s)

    async def _enter(self, reference: str, deadline_s: float | None) -> Judge | Failure:
        """Waits for a judge that is being opened; bounded like the queue behind it."""
        if self._closed or self._entering >= self._config.max_queue_items:
            return self._flights.full(self._entering)
        self._entering += 1
        try:
            async with asyncio.timeout_at(deadline_s):  # loop.time() is time.monotonic()
                return await self._shelf.get(reference)
        except TimeoutError:
            return TIMED_OUT
        finally:
            self._entering -= 1

    async def _work(
        self, kind: str, judge: Judge, need: JudgeNeed, named: tuple[VerdictKey, str], until_s: float | None
    ) -> Landed:
        key, numeric_class = named
        started_s = time.perf_counter()
        stored = await self._verdicts.find_stored(key, need)
        cache_s = time.perf_counter() - started_s
        if stored is not None:
            return Landed(stored[0], stored[1], Timing(cache_s=cache_s))
        answer, timing = await _ask(kind, judge, need, until_s)
        if not isinstance(answer, Failure):
            wrong = why_no_answer(need, answer)
            if wrong:
                _log.error("judge %s: %s", judge.status.name, wrong)
                answer = _NONSENSE
            elif judge.status.numeric_class == numeric_class:  # else it was read in another way than its name says
                self._verdicts.keep(key, answer)
        return Landed(answer, Source.COMPUTED, replace(timing, cache_s=timing.cache_s + cache_s))


async def _ask(
    kind: str, judge: Judge, need: JudgeNeed, until_s: float | None
) -> tuple[Choice | Generated | Failure, Timing]:
    try:
        ask: Any = judge.choose if kind == "choose" else judge.generate
        answer: tuple[Choice | Generated | Failure, Timing] = await ask(need, deadline_s=until_s)
    except Exception as error:  # noqa: BLE001 - judges answer with failures; one that raises fails this need alone
        # Not the error's own words, which may hold a user's text.
        _log.error("judge %s raised %s", judge.status.name, type(error).__qualname__)
        return _DEFECT, Timing()
    return answer
