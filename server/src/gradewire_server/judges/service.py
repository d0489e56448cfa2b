"""The judges of a server: opened when they are first asked, remembered, asked once, bounded and checked."""

import asyncio
from dataclasses import dataclass, replace
from typing import Any

from typing_extensions import override

from gradewire_server.domain.judge import Choice, Choose, Generate, Generated
from gradewire_server.domain.needs import AnswerSource
from gradewire_server.domain.ports import JudgeReply, Judges, ModelIndex, ModelStatus
from gradewire_server.domain.result import Failure, Timing
from gradewire_server.judges.backend import Judge, JudgeBackend
from gradewire_server.judges.images.checks import ImageChecks
from gradewire_server.judges.images.seeing import SeeingJudge
from gradewire_server.judges.library import USABLE, JudgeLibrary
from gradewire_server.judges.telemetry import JudgeTelemetry
from gradewire_server.judges.verdicts.cache import VerdictCache
from gradewire_server.judges.verdicts.cached import MemoryCachedJudge, StoreCachedJudge
from gradewire_server.judges.verdicts.checked import CheckedJudge
from gradewire_server.judges.verdicts.queue_limit import QueueLimit
from gradewire_server.judges.verdicts.single_flight import TIMED_OUT, SingleFlightJudge
from gradewire_server.settings.judge import JudgeConfig


@dataclass(frozen=True, slots=True)
class JudgeHealth:
    """State of the default judge.

    Attributes:
        configured: Whether there is to be one at all.
        ready: Whether it can answer, at once or after it was loaded at its first use.
        trouble: Why it cannot, where somebody wanted it: the operator named or preloads it, or it was in use.
    """

    configured: bool
    ready: bool
    trouble: str = ""


class JudgeService(Judges, ModelIndex):
    """Answers Choose and Generate by the judge that each need names. Lives on the event loop it is used on.

    Args:
        backend: Where judges run; closed with this.
        config: See `JudgeConfig`.
        verdicts: What is known already.
        telemetry: Where it is counted.
        default: Judge that "" stands for.
    """

    def __init__(
        self,
        backend: JudgeBackend,
        config: JudgeConfig,
        verdicts: VerdictCache,
        telemetry: JudgeTelemetry,
        *,
        default: str,
    ) -> None:
        self._config = config
        self._verdicts = verdicts
        self._telemetry = telemetry
        self._limit = QueueLimit(config.max_queue_items)
        self._images = ImageChecks(config.images)
        self._library = JudgeLibrary(backend, default=default, wrap=self._wrapped)
        self._entering = 0
        self._closed = False
        telemetry.expose(
            queued=lambda: self._limit.waiting + self._entering, up=lambda: 1.0 if self.health().ready else 0.0
        )

    def load_soon(self) -> None:
        """Begins to load the default judge. Calls wait for it meanwhile; `health` tells whether it worked."""
        self._library.open_soon(self._library.default)

    @override
    async def choose(self, need: Choose, *, deadline_s: float | None = None) -> JudgeReply[Choice]:
        judge = self._library.loaded_one(need.model) or await self._opened(need.model, deadline_s)
        if isinstance(judge, Failure):
            return self._counted("choose", JudgeReply(judge, AnswerSource.COMPUTED, Timing()))
        return self._counted("choose", await judge.choose(need, deadline_s=deadline_s))

    @override
    async def generate(self, need: Generate, *, deadline_s: float | None = None) -> JudgeReply[Generated]:
        judge = self._library.loaded_one(need.model) or await self._opened(need.model, deadline_s)
        if isinstance(judge, Failure):
            return self._counted("generate", JudgeReply(judge, AnswerSource.COMPUTED, Timing()))
        return self._counted("generate", await judge.generate(need, deadline_s=deadline_s))

    def within(self, namespace: str) -> Judges:
        """The same judges for a tenant's namespace: verdicts of others are neither found nor waited for."""
        return _JudgesOf(self, namespace)

    @override
    def statuses(self) -> list[ModelStatus]:
        return self._library.statuses()

    @override
    def status(self, name: str) -> ModelStatus | Failure:
        return self._library.status(name)

    def health(self) -> JudgeHealth:
        """Whether the default judge works."""
        known = self._library.statuses()
        if not known:
            return JudgeHealth(configured=False, ready=False)
        trouble = self._library.trouble(self._library.default)
        default = next((status for status in known if status.is_default), None)
        there = default is not None and default.state in USABLE
        wanted = there or self._config.preload or bool(self._config.default)
        return JudgeHealth(configured=True, ready=not trouble, trouble=trouble if wanted else "")

    async def close(self) -> None:
        """Fails what waits, closes the judges and their backend, writes the verdicts. Closing twice is allowed."""
        if self._closed:
            return
        self._closed = True
        self._limit.close()
        await self._library.close()
        self._images.close()
        await self._verdicts.flush()

    def _wrapped(self, judge: Judge) -> Judge:
        """Eyes, then memory, then single flight, then the second level, then the checked judge."""
        stored = StoreCachedJudge(CheckedJudge(judge), self._verdicts)
        known = MemoryCachedJudge(SingleFlightJudge(stored, self._limit), self._verdicts)
        return SeeingJudge(known, self._images)

    async def _opened(self, reference: str, deadline_s: float | None) -> Judge | Failure:
        """Waits for a judge that is being opened; no more callers may wait than for its answers."""
        refusal = self._limit.refusal(self._entering)
        if refusal is not None:
            return refusal
        self._entering += 1
        try:
            async with asyncio.timeout_at(deadline_s):  # loop.time() is time.monotonic()
                return await self._library.get(reference)
        except TimeoutError:
            return TIMED_OUT
        finally:
            self._entering -= 1

    def _counted(self, kind: str, reply: JudgeReply[Any]) -> JudgeReply[Any]:
        if isinstance(reply.answer, Failure):
            self._telemetry.failed(reply.answer.status)
        else:
            self._telemetry.answered(kind, reply.source, reply.timing)
        return reply


class _JudgesOf(Judges):
    """Asks a service in the name of a namespace, which is a part of what tells verdicts apart."""

    def __init__(self, service: JudgeService, namespace: str) -> None:
        self._service = service
        self._namespace = namespace

    @override
    async def choose(self, need: Choose, *, deadline_s: float | None = None) -> JudgeReply[Choice]:
        return await self._service.choose(replace(need, namespace=self._namespace), deadline_s=deadline_s)

    @override
    async def generate(self, need: Generate, *, deadline_s: float | None = None) -> JudgeReply[Generated]:
        return await self._service.generate(replace(need, namespace=self._namespace), deadline_s=deadline_s)
