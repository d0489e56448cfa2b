"""What the tests of decision models share."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from tests.server.judges.remote.remote import Counted
from tests.support.fakes.odd_openai import Heard, reply

from gradewire_server.judges.decisions.backend import DecisionJudges
from gradewire_server.judges.remote.judge import RemoteJudge
from gradewire_server.settings.judge import RemoteJudgeConfig

SURE = {"1": 0.1, "2": 0.2, "3": 0.7}


def is_own(heard: Heard) -> bool:
    """Whether a request is gradewire's own small question, which holds no item."""
    return "Water" in str(heard.body)


def decided(probabilities: object, *, name: str = "verdict", **more: object) -> bytes:
    """An answer in the form of System One."""
    answer = {"type": "choice", "choice": "3", "probabilities": probabilities, "confidence": 0.5}
    return reply(200, {"model": "m-1", "answers": {name: answer | more}})


def listed(probabilities: Mapping[object, object], **more: object) -> bytes:
    """An answer in the form of Decisions."""
    entries = [{"value": value, "probability": share} for value, share in probabilities.items()]
    answer = {"type": "choice", "name": "verdict", "choice": "3", "probabilities": entries, "confidence": 0.5}
    return reply(200, {"model": "m-1", "answers": [answer | more], "usage": {"input_tokens": 40, "output_tokens": 0}})


def after_own(*answers: bytes) -> list[bytes | Callable[[Heard], bytes]]:
    """Answers to items behind a good one to our own question."""
    return [decided({"true": 0.9, "false": 0.1}), *answers]


@asynccontextmanager
async def opened(url: str, observer: Counted | None = None, **settings: Any) -> AsyncIterator[RemoteJudge]:
    """A decision model behind a server."""
    config = replace(RemoteJudgeConfig(url, "m", token="key"), **settings)  # noqa: S106 - no secret
    source = DecisionJudges(config, observer or Counted())
    judge = await source.open("m")
    assert isinstance(judge, RemoteJudge)
    try:
        yield judge
    finally:
        await judge.close()
        await source.close()
