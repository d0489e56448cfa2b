"""What the tests of judges behind servers share."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

from gradewire_server.domain.judge import Choose, Generate, JudgePrompt, Role, Turn
from gradewire_server.judges.prometheus import Tokens
from gradewire_server.judges.remote.judge import RemoteJudge
from gradewire_server.judges.remote.openai import OpenAIJudges
from gradewire_server.settings.judge import RemoteJudgeConfig

FIXED = (
    Turn(Role.SYSTEM, "You compare answers with a reference and rate them: 1 is wrong, 2 is unclear, 3 is right."),
    Turn(Role.USER, "Question: capital of Spain?\nReference: Madrid\nAnswer: it is Madrid"),
    Turn(Role.ASSISTANT, "Rating: 3"),
)
RATING = ("1", "2", "3")


def prompt(prediction: str = "Paris", *, opening: str = "Rating:") -> JudgePrompt:
    return JudgePrompt(
        FIXED, lead="Question: capital of France?\nReference: Paris\nAnswer: ", prediction=prediction, opening=opening
    )


def choose(prediction: str = "Paris", *, options: tuple[str, ...] = RATING, opening: str = "Rating:") -> Choose:
    return Choose("", prompt(prediction, opening=opening), options)


def generate(max_tokens: int = 8, *, stop: tuple[str, ...] = (), prediction: str = "Paris") -> Generate:
    return Generate("", prompt(prediction, opening="The answer"), max_tokens, stop)


@dataclass
class Counted:
    """A RemoteJudgeObserver that remembers."""

    usages: list[SimpleNamespace] = field(default_factory=list)
    retries: list[str] = field(default_factory=list)
    flying: int = 0
    most_flying: int = 0

    def request_answered(self, tokens: Tokens, cost: float | None, duration_s: float) -> None:
        counts = {"prompt_tokens": tokens.prompt, "cached_tokens": tokens.cached, "generated_tokens": tokens.generated}
        self.usages.append(SimpleNamespace(**counts, cost=cost, duration_s=duration_s))

    def request_retried(self, reason: str) -> None:
        self.retries.append(reason)

    def requests_in_flight(self, change: int) -> None:
        self.flying += change
        self.most_flying = max(self.most_flying, self.flying)


async def eventually(condition: Callable[[], bool], *, within_s: float = 20.0) -> None:
    """Waits for something that nothing announces."""
    async with asyncio.timeout(within_s):
        while not condition():  # noqa: ASYNC110 - see above
            await asyncio.sleep(0.01)


@asynccontextmanager
async def opened(url: str, observer: Counted | None = None, **settings: Any) -> AsyncIterator[RemoteJudge]:
    """A judge behind an OpenAI-compatible server."""
    config = replace(RemoteJudgeConfig(url, "m", token="key"), **settings)  # noqa: S106 - no secret
    source = OpenAIJudges(config, observer or Counted())
    judge = await source.open("m")
    assert isinstance(judge, RemoteJudge)
    try:
        yield judge
    finally:
        await judge.close()
        await source.close()
