"""The base class of what stands around a judge."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from typing_extensions import override

from gradewire_server.domain.judge import Choice, Choose, Generate, Generated, JudgeNeed
from gradewire_server.domain.ports import JudgeReply, ModelStatus
from gradewire_server.judges.backend import Judge

Ask: TypeAlias = Callable[[float | None], Awaitable[JudgeReply[Any]]]
"""Asks the judge behind a wrapper; takes a deadline in `time.monotonic()` seconds."""


class JudgeWrapper(Judge, ABC):
    """A `Judge` around another one. Subclasses add to it in `_answer`, which handles choices and texts alike.

    Args:
        judge: The judge behind it; closed with it.
    """

    def __init__(self, judge: Judge) -> None:
        self._judge = judge

    @property
    @override
    def status(self) -> ModelStatus:
        return self._judge.status

    @override
    async def choose(self, need: Choose, *, deadline_s: float | None = None) -> JudgeReply[Choice]:
        return await self._answer(need, lambda until_s: self._judge.choose(need, deadline_s=until_s), deadline_s)

    @override
    async def generate(self, need: Generate, *, deadline_s: float | None = None) -> JudgeReply[Generated]:
        return await self._answer(need, lambda until_s: self._judge.generate(need, deadline_s=until_s), deadline_s)

    @override
    def trouble(self) -> str:
        return self._judge.trouble()

    @override
    async def close(self) -> None:
        await self._judge.close()

    @abstractmethod
    async def _answer(self, need: JudgeNeed, ask: Ask, deadline_s: float | None) -> JudgeReply[Any]:
        """Answers a need.

        Args:
            need: What is asked.
            ask: Asks the judge behind it.
            deadline_s: In `time.monotonic()` seconds.
        """
