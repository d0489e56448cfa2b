"""Judges without a model: what they say is a script, so results can be worked out on paper."""

import asyncio
import hashlib
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from gradewire_server.domain.items import Failure, Status, Timing
from gradewire_server.domain.judge import Choice, Choose, Generate, Generated, JudgeNeed, JudgePrompt
from gradewire_server.domain.needs import AnswerSource
from gradewire_server.domain.ports import JudgeReply, ModelStatus
from gradewire_server.judges.backend import JudgeUnavailableError

A = TypeVar("A")


def shown(prompt: JudgePrompt) -> str:
    """All that a judge sees, in one text: turns as "role: text", the last one begun."""
    turns = [f"{turn.role}: {turn.text}" for turn in prompt.fixed]
    item = f"user: {prompt.lead}{prompt.prediction}{prompt.tail}"
    return "\n".join([*turns, item, f"assistant: {prompt.opening}"])


def choice(need: Choose, weights: Sequence[float], *, mass: float | None = 0.9, truncated: bool = False) -> Choice:
    """A choice with these weights of the options, in their order."""
    total = sum(weights)
    return Choice(
        probabilities=tuple(weight / total for weight in weights),
        mass=mass,
        prompt_tokens=len(shown(need.prompt).split()),
        truncated=truncated,
    )


def preferring(option: str, share: float = 0.8) -> Callable[[Choose], Choice]:
    """Gives `share` to one option wherever it is among them, else to the first; the rest is shared evenly."""

    def choose(need: Choose) -> Choice:
        best = option if option in need.options else need.options[0]
        rest = (1 - share) / (len(need.options) - 1)
        return choice(need, [share if each == best else rest for each in need.options])

    return choose


def by_hash(need: Choose) -> Choice:
    """Weights that depend on all that is seen, and on nothing else."""
    seen = shown(need.prompt)
    digests = [hashlib.blake2b(f"{seen}\0{option}".encode(), digest_size=4).digest() for option in need.options]
    return choice(need, [1 + int.from_bytes(digest, "big") for digest in digests])


def saying(*texts: str) -> Callable[[Generate], Generated]:
    """Says one text after the other, then the last one again and again; cut at `max_tokens` words."""
    told = itertools.chain(texts, itertools.repeat(texts[-1]))

    def generate(need: Generate) -> Generated:
        words = next(told).split(" ")
        return Generated(
            text=" ".join(words[: need.max_tokens]).strip(),
            complete=len(words) <= need.max_tokens,
            prompt_tokens=len(shown(need.prompt).split()),
            generated_tokens=min(len(words), need.max_tokens),
        )

    return generate


@dataclass
class Script:
    """What a judge says, and what it was asked.

    Attributes:
        on_choose: Answers a choice.
        on_generate: Answers a wish for text.
        asked: All needs so far.
        failure: Answers everything, if set.
    """

    on_choose: Callable[[Choose], Choice | Failure] = by_hash
    on_generate: Callable[[Generate], Generated | Failure] = field(default_factory=lambda: saying("It says the same."))
    asked: list[Choose | Generate] = field(default_factory=list)
    failure: Failure | None = None

    def choose(self, need: Choose) -> Choice | Failure:
        self.asked.append(need)
        return self.failure or self.on_choose(need)

    def generate(self, need: Generate) -> Generated | Failure:
        self.asked.append(need)
        return self.failure or self.on_generate(need)

    @property
    def seen(self) -> list[str]:
        """What was seen, in the order of asking."""
        return [shown(need.prompt) for need in self.asked]


def judge_status(name: str, *, digest: str = "", is_default: bool = False, state: str = "loaded") -> ModelStatus:
    """How a scripted judge presents itself."""
    return ModelStatus(
        name=name,
        digest=digest or hashlib.sha256(name.encode()).hexdigest(),
        state=state,
        is_default=is_default,
        max_tokens=4096,
        licence="Apache-2.0",
        precision="scripted",
        kind="judge",
        remarks=("says what a test wrote",),
    )


class ScriptedJudge:
    """Implements the Judge protocol.

    Attributes:
        script: What it says.
        gate: Awaited by every call before it is answered: a place to hold them.
        running: Calls that are held now.
        cancelled: Calls that were cancelled while they were held.
        why: Its trouble.
        closed: Whether it was closed.
    """

    def __init__(self, status: ModelStatus, script: Script) -> None:
        self._status = status
        self.script = script
        self.gate: Callable[[], asyncio.Future[None] | None] = lambda: None
        self.running = 0
        self.cancelled = 0
        self.why = ""
        self.closed = False

    @property
    def status(self) -> ModelStatus:
        return self._status

    async def answer(self, need: JudgeNeed, *, deadline_s: float | None = None) -> JudgeReply[Any]:
        answer = self.choose if isinstance(need, Choose) else self.generate
        return await answer(need, deadline_s=deadline_s)

    async def choose(self, need: Choose, *, deadline_s: float | None = None) -> JudgeReply[Choice]:
        del deadline_s
        await self._held()
        return JudgeReply(self.script.choose(need), AnswerSource.COMPUTED, Timing(queue_s=0.25, inference_s=0.5))

    async def generate(self, need: Generate, *, deadline_s: float | None = None) -> JudgeReply[Generated]:
        del deadline_s
        await self._held()
        return JudgeReply(self.script.generate(need), AnswerSource.COMPUTED, Timing(queue_s=0.25, inference_s=2.0))

    def trouble(self) -> str:
        return self.why

    async def close(self) -> None:
        self.closed = True

    async def _held(self) -> None:
        assert not self.closed, "a closed judge was asked"
        self.running += 1
        try:
            gate = self.gate()
            await (gate if gate is not None else asyncio.sleep(0))
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.running -= 1


class ScriptedJudges:
    """Implements the JudgeBackend protocol.

    Attributes:
        known: Judges by name; putting in another one is building it anew.
        opened: Names, in the order of opening.
        failures: Names that cannot be opened.
        opening: Awaited while a judge is opened.
        closed: Whether it was closed.
    """

    def __init__(self, *names: str, script: Script | None = None) -> None:
        self.script = script or Script()
        self.known = {name: ScriptedJudge(judge_status(name), self.script) for name in names or ("scripted",)}
        self.opened: list[str] = []
        self.failures: dict[str, Failure] = {}
        self.opening: Callable[[], asyncio.Future[None] | None] = lambda: None
        self.closed = False

    def listed(self) -> Sequence[ModelStatus]:
        return tuple(judge.status for judge in self.known.values())

    async def open(self, name: str) -> ScriptedJudge:
        self.opened.append(name)
        gate = self.opening()
        await (gate if gate is not None else asyncio.sleep(0))
        if name in self.failures:
            raise JudgeUnavailableError(self.failures[name])
        if name not in self.known:
            raise JudgeUnavailableError(Failure(Status.MODEL_UNAVAILABLE, f"{name} is not built"))
        return self.known[name]

    async def close(self) -> None:
        self.closed = True
