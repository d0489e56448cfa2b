"""What the tests of the embedded judge share: SmolLM2, which cannot judge, and whose every answer is its own."""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.support.judges.smollm2 import smollm2_repository

from gradewire_server.domain.judge import Choose, Generate, JudgePrompt, Role, Turn
from gradewire_server.judges.local.judge import EmbeddedJudge, EmbeddedJudges
from gradewire_server.settings.judge import EmbeddedJudgeConfig

NAME = "smollm2-135m-instruct"
FIXED = (
    Turn(Role.SYSTEM, "Rate answers: 1 is wrong, 2 is unclear, 3 is right."),
    Turn(Role.USER, "Question: capital of Spain?\nReference: Madrid\nAnswer: it is Madrid"),
    Turn(Role.ASSISTANT, "Rating: 3"),
)
OTHER = (Turn(Role.SYSTEM, "Say yes or no."),)
ANSWERS = (
    "Paris",
    "it is Rome, I think",
    "no",
    "la ville de Paris, la capitale",
    "巴黎",
    "12 or 13",
    "of France?",
    "x" * 40,
)


@dataclass(eq=False)
class Observed:
    """Counts what a judge tells."""

    runs: list[SimpleNamespace] = field(default_factory=list)
    restarts: int = 0
    ran_once: asyncio.Event = field(default_factory=asyncio.Event)

    def ran(self, **run: float) -> None:
        self.runs.append(SimpleNamespace(**run))
        self.ran_once.set()

    def restarted(self) -> None:
        self.restarts += 1


def choose(answer: str, *, fixed: tuple[Turn, ...] = FIXED) -> Choose:
    prompt = JudgePrompt(fixed, "Question: capital of France?\nReference: Paris\nAnswer: ", answer, opening="Rating:")
    return Choose("", prompt, ("1", "2", "3"))


def generate(answer: str, *, max_tokens: int = 6, stop: tuple[str, ...] = ()) -> Generate:
    return Generate("", JudgePrompt(OTHER, f"Is {answer} a place?"), max_tokens, stop)


@asynccontextmanager
async def judging(**options: Any) -> AsyncIterator[tuple[EmbeddedJudge, Observed]]:
    """An open judge, and what it told."""
    observed = Observed()
    options = {"form": "int8", "max_batch_tokens": 80, "max_item_tokens": 300, "nice": 0, **options}
    judges = EmbeddedJudges(EmbeddedJudgeConfig(smollm2_repository(), **options), observed)
    judge = await judges.open(NAME)
    observed.runs.clear()
    observed.ran_once.clear()
    try:
        yield judge, observed
    finally:
        await judge.close()
        await judges.close()


async def answers(judge: EmbeddedJudge, needs: list[Choose | Generate]) -> list[Any]:
    """What it says to all of them, asked at once."""

    async def ask(need: Choose | Generate) -> Any:
        if isinstance(need, Choose):
            return (await judge.choose(need, deadline_s=None)).answer
        return (await judge.generate(need, deadline_s=None)).answer

    return await asyncio.gather(*map(ask, needs))


def alive(pid: int) -> bool:
    """Whether a process runs."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in {"Z", "X"}


async def gone(pid: int, *, within_s: float = 10.0) -> bool:
    """Whether a process ends within a time."""
    give_up_s = time.monotonic() + within_s
    while alive(pid):
        if time.monotonic() > give_up_s:
            return False
        await asyncio.sleep(0.02)
    return True


def worker_of(judge: EmbeddedJudge) -> int:
    """The process that computes."""
    pid = judge._supervisor.pid
    assert pid is not None
    assert os.getpgid(pid) == pid
    return pid
