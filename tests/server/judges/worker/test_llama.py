"""What llama.cpp computes is what the queue believes: kept fixed turns are there, whatever was computed in between."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.judges.smollm2 import smollm2_repository

from gradewire_models.judges.cores.rows import RowResult
from gradewire_models.judges.repository import load_judge
from gradewire_server.judges.local.queue import EmbeddedQueue, Work
from gradewire_server.judges.worker.llama import LlamaCore
from gradewire_server.settings.judge import EmbeddedJudgeConfig

if TYPE_CHECKING:
    from gradewire_server.domain.items import Failure

PROMPTS = [*(tuple(range(1000 * number, 1000 * number + 8)) for number in range(1, 8)), ()]


def work(fixed: tuple[int, ...], number: int, *, max_tokens: int = 0) -> Work:
    done: asyncio.Future[RowResult | Failure] = asyncio.get_running_loop().create_future()
    labels = () if max_tokens else (28, 29)
    return Work(fixed, (300 + number, 301, 302), done, 0.0, labels=labels, max_tokens=max_tokens)


async def test_nothing_is_computed_but_what_a_run_says(monkeypatch: pytest.MonkeyPatch) -> None:
    judge = load_judge(smollm2_repository(), "smollm2-135m-instruct")
    assert judge.gguf_path is not None
    core = LlamaCore(judge.gguf_path, threads=1, context_tokens=64, max_states=8)
    assert core.limits.max_prefixes < len(PROMPTS)
    computed = 0
    complete = core._server.handle_completions

    def counted(request: dict[str, Any]) -> Any:
        nonlocal computed
        answer = complete(request)
        usage = answer["usage"]
        computed += usage["prompt_tokens"] - usage["prompt_tokens_details"]["cached_tokens"]
        return answer

    class Counted:
        handle_completions = staticmethod(counted)

    monkeypatch.setattr(core, "_server", Counted)
    config = EmbeddedJudgeConfig(Path(), max_batch_tokens=64, max_sequences=4, max_prefix_tokens=4096)
    queue = EmbeddedQueue(config, core.limits, 64)
    rounds = [[work(fixed, 0) for fixed in PROMPTS]]
    # Then one by one: without fixed turns in every way, what is kept (the longest unused first), what is not.
    asked = [(7, 0), (7, 1), (7, 2), (7, 0), (2, 0), (3, 2), (4, 1), (0, 0)]
    rounds += [[work(PROMPTS[at], number, max_tokens=most)] for number, (at, most) in enumerate(asked)]
    for works in rounds:
        for each in works:
            queue.push(each)
        while (planned := queue.plan()) is not None:
            before = computed
            results = core.run(planned.run)
            # llama.cpp computes the last token of the fixed turns once more, and a choice's last one.
            assert planned.run.tokens <= computed - before <= planned.run.tokens + 2
            for mine, row, result in zip(planned.works, planned.run.rows, results, strict=False):
                mine.take(row, result)
            queue.computed(planned)
        assert all(isinstance(each.done.result(), RowResult) for each in works)
