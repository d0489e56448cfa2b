"""The first level of the verdict cache: memory."""

import time
from typing import Any

from typing_extensions import override

from gradewire_server.domain.judge import JudgeNeed
from gradewire_server.domain.needs import AnswerSource
from gradewire_server.domain.ports import JudgeReply
from gradewire_server.domain.result import Timing
from gradewire_server.judges.backend import Judge
from gradewire_server.judges.verdicts.cache import VerdictCache
from gradewire_server.judges.verdicts.wrapper import Ask, JudgeWrapper


class MemoryCachedJudge(JudgeWrapper):
    """Answers from memory what is there, and asks the judge behind it for the rest.

    Args:
        judge: Puts its answers into memory: a `StoreCachedJudge` stands somewhere behind this.
        verdicts: What is known.
    """

    def __init__(self, judge: Judge, verdicts: VerdictCache) -> None:
        super().__init__(judge)
        self._verdicts = verdicts

    @override
    async def _answer(self, need: JudgeNeed, ask: Ask, deadline_s: float | None) -> JudgeReply[Any]:
        started_s = time.perf_counter()
        key = await self._verdicts.key(need, self.status)
        known = self._verdicts.find(key, need)
        if known is not None:
            return JudgeReply(known, AnswerSource.MEMORY, Timing(cache_s=time.perf_counter() - started_s))
        return await ask(deadline_s)
