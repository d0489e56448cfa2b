"""A judge service over scripted judges, and what its tests ask of it."""

import asyncio
from typing import Any

from prometheus_client import CollectorRegistry
from tests.support.judges.scripted import ScriptedJudges

from gradewire_server.domain.judge import Choose, Generate, JudgePrompt, Role, Turn
from gradewire_server.judges.prometheus import JudgeTelemetry
from gradewire_server.judges.service import JudgeService
from gradewire_server.judges.verdict_cache import VerdictCache
from gradewire_server.settings.judge import JudgeConfig
from gradewire_server.storage.cache import SecondLevel, SegmentedLru, StorageTelemetry

FIXED = (Turn(Role.SYSTEM, "Grade."), Turn(Role.USER, "right?"), Turn(Role.ASSISTANT, "yes"))
CONFIG = JudgeConfig(max_queue_items=3)  # where judges come from is the source's affair


def choose(text: str = "a cat", *, model: str = "", options: tuple[str, ...] = ("yes", "no")) -> Choose:
    return Choose(model, JudgePrompt(FIXED, lead="Answer: ", prediction=text, opening="Verdict:"), options)


def generate(text: str = "a cat", *, max_tokens: int = 8, stop: tuple[str, ...] = ()) -> Generate:
    return Generate("", JudgePrompt(FIXED, lead="Answer: ", prediction=text), max_tokens, stop)


class ScriptedService:
    """A service over scripted judges, and what was counted."""

    def __init__(
        self, *, config: JudgeConfig = CONFIG, source: Any = None, second: SecondLevel | None = None, **caching: Any
    ) -> None:
        self.registry = CollectorRegistry()
        self.source = ScriptedJudges("scripted", "other") if source is None else source
        lru = SegmentedLru(1 << 20)
        verdicts = VerdictCache(
            lru, second, StorageTelemetry(self.registry), namespace=caching.get("namespace", "n"), max_pending_writes=64
        )
        self.service = JudgeService(
            self.source, config, verdicts, JudgeTelemetry(self.registry), default=config.default or "scripted"
        )

    def count(self, name: str, **labels: str) -> float:
        return self.registry.get_sample_value(f"gradewire_judge_{name}", labels) or 0.0


def held(judge: Any, count: int) -> tuple[asyncio.Event, asyncio.Future[None]]:
    """Holds the calls of a judge; the event is set once `count` of them are held."""
    gate: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    there = asyncio.Event()

    def hold() -> asyncio.Future[None]:
        if judge.running >= count:
            there.set()
        return asyncio.shield(gate)

    judge.gate = hold
    return there, gate
