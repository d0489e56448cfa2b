"""A judge that is never shown what it cannot see, nor what is no picture."""

import asyncio
from dataclasses import replace
from typing import Any, TypeVar

from typing_extensions import override

from gradewire_server.domain.judge import Choice, Choose, Generate, Generated
from gradewire_server.domain.needs import AnswerSource
from gradewire_server.domain.ports import JudgeReply, ModelStatus
from gradewire_server.domain.quoting import quoted
from gradewire_server.domain.result import Failure, Status, Timing
from gradewire_server.judges.backend import Judge
from gradewire_server.judges.images.checks import ImageChecks
from gradewire_server.judges.verdicts.single_flight import TIMED_OUT

N = TypeVar("N", Choose, Generate)


class SeeingJudge(Judge):
    """A judge around another one; stands before the caches, whose keys need the pictures' digests.

    Args:
        judge: The judge behind it; closed with it. It gets pictures that were checked, and none if it cannot see.
        checks: Checks them.
    """

    def __init__(self, judge: Judge, checks: ImageChecks) -> None:
        self._judge = judge
        self._checks = checks

    @property
    @override
    def status(self) -> ModelStatus:
        return self._judge.status

    @override
    async def choose(self, need: Choose, *, deadline_s: float | None = None) -> JudgeReply[Choice]:
        seen = await self._seen(need, deadline_s) if need.prompt.images else need
        return _refused(seen) if isinstance(seen, Failure) else await self._judge.choose(seen, deadline_s=deadline_s)

    @override
    async def generate(self, need: Generate, *, deadline_s: float | None = None) -> JudgeReply[Generated]:
        seen = await self._seen(need, deadline_s) if need.prompt.images else need
        return _refused(seen) if isinstance(seen, Failure) else await self._judge.generate(seen, deadline_s=deadline_s)

    @override
    def trouble(self) -> str:
        return self._judge.trouble()

    @override
    async def close(self) -> None:
        await self._judge.close()

    async def _seen(self, need: N, deadline_s: float | None) -> N | Failure:
        if not self.status.sees_images:
            return cannot_see(self.status.name)
        try:
            async with asyncio.timeout_at(deadline_s):  # loop.time() is time.monotonic()
                images = await self._checks.checked(need.prompt.images)
        except TimeoutError:
            return TIMED_OUT
        return images if isinstance(images, Failure) else replace(need, prompt=replace(need.prompt, images=images))


def cannot_see(name: str) -> Failure:
    """What a request gets that would show a picture to a judge without eyes."""
    return Failure(
        Status.JUDGE_CANNOT_SEE,
        f"judge {quoted(name)} cannot be shown pictures: name one that can (model), or leave out image=true; where the "
        "model of a judge's own server can, its operator says so (judge_sees_images; of gradewire score --judge-url: "
        "GRADEWIRE_JUDGE_SEES_IMAGES=yes)",
    )


def _refused(failure: Failure) -> JudgeReply[Any]:
    return JudgeReply(failure, AnswerSource.COMPUTED, Timing())
