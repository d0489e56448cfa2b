"""A judge behind the two levels of the verdict cache: memory, then, behind single flight, disk or Redis."""

import time
from dataclasses import replace
from typing import Any

from typing_extensions import override

from gradewire_server.domain.judge import JudgeNeed
from gradewire_server.domain.needs import AnswerSource
from gradewire_server.domain.ports import JudgeReply
from gradewire_server.domain.result import Failure, Timing
from gradewire_server.judges.backend import Judge
from gradewire_server.judges.verdicts.cache import VerdictCache
from gradewire_server.judges.verdicts.wrapper import Ask, JudgeWrapper


class _CachedJudge(JudgeWrapper):
    def __init__(self, judge: Judge, verdicts: VerdictCache) -> None:
        super().__init__(judge)
        self._verdicts = verdicts


class MemoryCachedJudge(_CachedJudge):
    """Answers from memory what is there, and asks the judge behind it for the rest.

    Args:
        judge: Puts its answers into memory: a `StoreCachedJudge` stands somewhere behind this.
        verdicts: What is known.
    """

    @override
    async def _answer(self, need: JudgeNeed, ask: Ask, deadline_s: float | None) -> JudgeReply[Any]:
        started_s = time.perf_counter()
        key = await self._verdicts.key(need, self.status)
        known = self._verdicts.find(key, need)
        if known is not None:
            return JudgeReply(known, AnswerSource.MEMORY, Timing(cache_s=time.perf_counter() - started_s))
        return await ask(deadline_s)


class StoreCachedJudge(_CachedJudge):
    """Answers from the second level what is there; keeps what the judge behind it answers, there and in memory.

    Args:
        judge: Never answers with nonsense.
        verdicts: What is known.
    """

    @override
    async def _answer(self, need: JudgeNeed, ask: Ask, deadline_s: float | None) -> JudgeReply[Any]:
        status = self.status
        key = await self._verdicts.key(need, status)
        started_s = time.perf_counter()
        stored = await self._verdicts.find_stored(key, need)
        cache_s = time.perf_counter() - started_s
        if stored is not None:
            return JudgeReply(stored[0], stored[1], Timing(cache_s=cache_s))
        reply = await ask(deadline_s)
        # A server that turned out to give less meanwhile was read in another way than the key says.
        if not isinstance(reply.answer, Failure) and self.status.precision == status.precision:
            self._verdicts.keep(key, reply.answer)
        return replace(reply, timing=replace(reply.timing, cache_s=reply.timing.cache_s + cache_s))
