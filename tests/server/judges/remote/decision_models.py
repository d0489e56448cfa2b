"""What the tests of decision models share."""

import asyncio
import json
import zlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from tests.server.judges.remote.remote_judges import Counted, prompt
from tests.support.fakes.odd_openai import Heard, reply

from gradewire_server.domain.judge import Choice, Choose, Role, Turn
from gradewire_server.judges.remote.decisions import DecisionJudges
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


Answers = dict[str, Any]


def unchanged(heard: Heard, answers: Answers) -> Answers:
    """What a `Decider` answers by itself."""
    del heard
    return answers


@dataclass
class Decider:
    """Answers every question of a request in the form of System One, as its texts have it.

    Attributes:
        tokens: Of each request, as the server counts them; None: it does not.
        change: Makes of the answers to a request what is sent; may return bytes, which are sent as they are.
        sizes: How many questions about items there were in each request.
    """

    tokens: int | None = None
    change: Callable[[Heard, Answers], Answers | bytes] = unchanged
    sizes: list[int] = field(default_factory=list)

    def __call__(self, heard: Heard) -> bytes:
        questions = heard.body["questions"]
        if not is_own(heard):
            self.sizes.append(len(questions))
        answers = {name: self._answer(heard, name) for name in questions}
        sent = self.change(heard, answers)
        if isinstance(sent, bytes):
            return sent
        usage = {} if self.tokens is None else {"usage": {"input_tokens": self.tokens, "output_tokens": 0}}
        return reply(200, {"answers": sent, **usage})

    def _answer(self, heard: Heard, name: str) -> dict[str, Any]:
        questions = heard.body["questions"]
        labels = list(questions[name]["criteria"])
        seed = zlib.crc32(json.dumps([heard.body["state"], questions[name]]).encode())
        first = 0.2 + 0.5 * seed / 2**32
        rest = (1 - first) / (len(labels) - 1)
        return {"type": "choice", "probabilities": {label: rest if n else first for n, label in enumerate(labels)}}


def about(prediction: str, what: str = "a", **more: Any) -> Choose:
    """A question about an item; `what` tells those about one item apart."""
    asked = replace(prompt(prediction), fixed=(Turn(Role.SYSTEM, f"Rate it by {what}."),))
    return Choose("", asked, ("1", "2", "3"), **more)


async def chosen(judge: RemoteJudge, *needs: Choose) -> list[tuple[float, ...]]:
    """The probabilities of needs that are asked at the same time."""
    answers = [each.answer for each in await asyncio.gather(*(judge.choose(need) for need in needs))]
    assert all(isinstance(answer, Choice) for answer in answers), answers
    return [answer.probabilities for answer in answers if isinstance(answer, Choice)]


@asynccontextmanager
async def opened(url: str, observer: Counted | None = None, **settings: Any) -> AsyncIterator[RemoteJudge]:
    """A decision model behind a server."""
    config = replace(RemoteJudgeConfig(url, "m", token="key", questions_per_request=4), **settings)  # noqa: S106 - no secret
    source = DecisionJudges(config, observer or Counted())
    judge = await source.open("m")
    assert isinstance(judge, RemoteJudge)
    try:
        yield judge
    finally:
        await judge.close()
        await source.close()
