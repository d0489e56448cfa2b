"""Items a second that a judge rates behind an OpenAI-compatible server, asked through gradewire."""

import asyncio
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from benchmarks.gpu.calling import items_of
from benchmarks.gpu.serving import serving

from gradewire import AsyncClient, GradewireError, JudgeParts
from gradewire.results import MetricScore

METRIC: Final = "lave"
AT_A_TIME: Final = 64
"""Items, and so requests at the judge's server."""
DEADLINE_S: Final = 60.0
"""Of an item."""
NOT_TOLD: Final = "not told"


@dataclass(frozen=True, slots=True)
class JudgeServer:
    """An OpenAI-compatible server.

    Attributes:
        url: Its base URL (http://host/v1).
        model: The model's name there.
    """

    url: str
    model: str


@dataclass(frozen=True, slots=True)
class JudgeChoice:
    """Which judge the user has.

    Attributes:
        server: One that is up.
        weights: Directory of a model for the vLLM of this machine.
    """

    server: JudgeServer | None = None
    weights: Path | None = None


@dataclass(slots=True)
class _Rated:
    """What became of the items so far."""

    items: int = 0
    read_tokens: int = 0
    written_tokens: int = 0
    untold: int = 0
    failures: Counter[str] = field(default_factory=Counter)

    def count(self, result: MetricScore) -> None:
        if result.score is None:
            self.failures[result.status.name] += 1
            return
        self.items += 1
        parts = result.parts
        if not isinstance(parts, JudgeParts) or parts.prompt_tokens is None or parts.generated_tokens is None:
            self.untold += 1
            return
        self.read_tokens += parts.prompt_tokens
        self.written_tokens += parts.generated_tokens


def judged_per_s(
    repository: Path, encoder: str, judge: JudgeServer, seconds: float, *, deadline_s: float = DEADLINE_S
) -> dict[str, Any]:
    """Has items rated that nobody has seen, `AT_A_TIME` at a time; a row of the report.

    Args:
        repository: Of built models; the server that asks the judge loads an encoder too.
        encoder: That one.
        judge: Who rates. A key is in GRADEWIRE_JUDGE_TOKEN, where its server wants one.
        seconds: For which items are begun; those under way then are waited for, `deadline_s` at the most.
        deadline_s: Of an item.

    Raises:
        RuntimeError: No item was rated; the message says why.
    """
    flags = {
        "device": "cpu",
        "default-model": encoder,
        "judge-backend": "openai",
        "judge-url": judge.url,
        "judge-remote-model": judge.model,
        "judge-max-in-flight": str(AT_A_TIME),
        "judge-timeout-s": str(deadline_s),
    }
    with serving(repository, flags) as address:
        return {"judge": judge.model, **asyncio.run(_rate(address, seconds, deadline_s))}


async def _rate(address: str, seconds: float, deadline_s: float) -> dict[str, Any]:
    rated = _Rated()
    async with AsyncClient(address) as client:
        # The first one opens the judge, and its server computes what all prompts have in common.
        (first,) = await client.score(items_of("first", 1), METRIC, deadline_s=deadline_s)
        if first.scores[METRIC].score is None:
            result = first.scores[METRIC]
            raise RuntimeError(f"the judge rates nothing: {result.status.name}: {result.message}")
        began_s = time.perf_counter()

        async def rate_on(caller: int) -> None:
            calls = 0
            while time.perf_counter() < began_s + seconds:
                calls += 1
                try:
                    (item,) = await client.score(items_of(f"{caller} {calls}", 1), METRIC, deadline_s=deadline_s)
                except GradewireError as error:
                    rated.failures[type(error).__name__] += 1
                else:
                    rated.count(item.scores[METRIC])

        await asyncio.gather(*(rate_on(caller) for caller in range(AT_A_TIME)))
        took_s = time.perf_counter() - began_s
    if not rated.items:
        raise RuntimeError(f"the judge rated one item and then none: {_said(rated.failures)}")
    told = not rated.untold
    return {
        "metric": METRIC,
        "items at a time": AT_A_TIME,
        "deadline of an item, s": deadline_s,
        "items": rated.items,
        "items/s": round(rated.items / took_s, 2),
        "tokens read/s": round(rated.read_tokens / took_s) if told else NOT_TOLD,
        "tokens written/s": round(rated.written_tokens / took_s) if told else NOT_TOLD,
        "failed": rated.failures.total(),
        "why": _said(rated.failures),
    }


def _said(failures: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in failures.most_common())
