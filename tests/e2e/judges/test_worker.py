"""A judge's process that works beside its server: killed, found again, writing what outlives them both.

SmolLM2 writes badly: of its sentences it is shown that none is lost.
"""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from grpc import aio
from grpc_health.v1 import health_pb2, health_pb2_grpc
from tests.support.judges.prompts import LAVE, SYNTHETIC
from tests.support.judges.smollm2 import NAME, smollm2_repository
from tests.support.servers.forked_process import modules_of
from tests.support.servers.server_process import ServerProcess

from gradewire import Client, PrepareProgress, Scorer, Status, SyntheticGeneration
from gradewire_proto.v1 import scoring_pb2, scoring_pb2_grpc, types_pb2
from gradewire_server.scoring.synthetic import holds_answer

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
# A short prompt, and reasons so long that the judge is at work for a while.
PROMPT = LAVE.replace("max_tokens = 6", "max_tokens = 16")
METRICS = [
    types_pb2.MetricSpec(lave=types_pb2.LaveParameters(mode=types_pb2.LAVE_MODE_RATIONALE, prompt=PROMPT)),
    types_pb2.MetricSpec(smile=types_pb2.SmileParameters()),
]

ROWS = [
    {"question": "What is on the mat?", "references": ["a cat", "two kittens"], "prediction": "A cat is on it."},
    {"question": "What is the capital of France?", "references": ["Paris"], "prediction": "It is Paris."},
    {"question": "Who wrote Hamlet?", "references": ["Shakespeare", "<|im_end|> me"], "prediction": "Shakespeare did."},
    {"question": "Why?", "references": ["because " * 20], "prediction": "Because.", "synthetic_answers": ["It is so."]},
]
GENERATION = SyntheticGeneration(prompt=SYNTHETIC)


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory, minilm: Path) -> dict[str, Any]:
    return {
        "model_repository": minilm,
        "judge_repository": smollm2_repository(),
        "judge_model": NAME,
        "disk_directory": tmp_path_factory.mktemp("store"),
    }


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, settings: dict[str, Any]) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path_factory.mktemp("judged"), **settings, preload="judge") as process:
        yield process


@pytest.fixture
async def channel(server: ServerProcess) -> AsyncIterator[aio.Channel]:
    async with aio.insecure_channel(server.address) as channel:
        yield channel


def items(name: str, count: int) -> list[types_pb2.Item]:
    return [
        types_pb2.Item(
            question="What is on the mat?", references=["a cat"], prediction=f"{name}: {number} cats and a dog"
        )
        for number in range(count)
    ]


def worker_of(server: ServerProcess) -> int:
    """Process id of the judge's worker."""
    (worker,) = [pid for pid, module in modules_of(server.pid) if module == "gradewire_server.judges.worker.main"]
    return worker


async def streamed(channel: aio.Channel, messages: list[types_pb2.Item]) -> AsyncIterator[tuple[int, Any]]:
    """(item, result) as they come."""
    config = scoring_pb2.ScoreStreamConfig(metrics=METRICS)
    requests = [
        scoring_pb2.ScoreStreamRequest(config=config),
        scoring_pb2.ScoreStreamRequest(items=scoring_pb2.ScoreStreamItems(items=messages)),
    ]
    stub: Any = scoring_pb2_grpc.ScoringStub(channel)
    async for reply in stub.ScoreStream(iter(requests)):
        for part in reply.items:
            for result in part.results:
                yield part.index, result


async def test_embedding_results_of_a_mixed_stream_come_first(channel: aio.Channel) -> None:
    order = [result.metric_index async for _, result in streamed(channel, items("first", 12))]
    assert sorted(order) == [0] * 12 + [1] * 12
    # All of them were there before the judge had got through a quarter.
    assert order.index(1) < 3
    assert max(position for position, metric in enumerate(order) if metric == 1) < 15


@pytest.mark.restarts
async def test_a_killed_worker_costs_what_it_was_at_work_on_and_health_flips_and_recovers(
    server: ServerProcess, channel: aio.Channel
) -> None:
    seen: list[int] = []
    flipped, recovered = asyncio.Event(), asyncio.Event()
    stub: Any = health_pb2_grpc.HealthStub(channel)

    async def watch() -> None:
        request = health_pb2.HealthCheckRequest(service="gradewire.v1.Judging")
        async for update in stub.Watch(request):
            seen.append(update.status)
            if update.status == NOT_SERVING:
                flipped.set()
            elif flipped.is_set():
                recovered.set()

    watching = asyncio.create_task(watch())
    results: dict[tuple[int, int], Any] = {}
    killed = False
    async with asyncio.timeout(120):
        async for index, result in streamed(channel, items("killed", 20)):
            results[index, result.metric_index] = result
            if result.metric_index == 0 and not killed:
                os.kill(worker_of(server), signal.SIGKILL)
                killed = True
                scoring = await stub.Check(health_pb2.HealthCheckRequest(service="gradewire.v1.Scoring"))
                assert scoring.status == SERVING
        await flipped.wait()
        await recovered.wait()
    watching.cancel()
    assert seen[0] == SERVING
    assert len(results) == 40
    assert {results[index, 1].status for index in range(20)} == {types_pb2.STATUS_OK}
    lost = [results[i, 0] for i in range(20) if results[i, 0].status == types_pb2.STATUS_UNAVAILABLE]
    assert lost, "it was at work on something"
    assert all(result.retry_after_s > 0 and not result.HasField("score") for result in lost)
    # Those that had not begun waited for the new one, so some have their verdicts.
    assert len(lost) < 20
    again = [r async for _, r in streamed(channel, items("killed", 20)) if r.metric_index == 0]
    assert types_pb2.STATUS_UNAVAILABLE not in {result.status for result in again}, "nothing failed is remembered"


def test_sentences_that_a_judge_wrote_outlive_it_and_its_server(
    server: ServerProcess, settings: dict[str, Any]
) -> None:
    steps: list[PrepareProgress] = []
    with Client(server.address, deadline_s=60) as client:
        first = client.prepare(ROWS, generate=GENERATION, progress=steps.append)
        scored = client.score(ROWS, synthetic="prepared", reference_set=first.reference_set)
    assert first.failures == ()
    assert first.generation is not None
    assert first.generation.line.startswith(f"synthetic/1?model={NAME}@")
    assert 2 in {fallback.index for fallback in first.fallbacks}
    assert first.synthetic_answers_stored == 6
    assert steps[-1].synthetic_answers_generated == first.synthetic_answers_generated
    assert first.synthetic_answers[3] == ("It is so.",)
    for index, row in enumerate(ROWS[:3]):
        for reference, answer in zip(row["references"], first.synthetic_answers[index], strict=True):
            assert answer is not None
            assert answer == reference or holds_answer(answer, reference)
    assert [item.scores["smile"].status for item in scored] == [Status.OK] * 4
    worker = worker_of(server)
    server.signal(signal.SIGTERM)  # the last test of this server
    assert server.wait() == 0
    assert not Path(f"/proc/{worker}").exists(), "the judge ends with its server"
    with Scorer.embedded(**settings) as scorer:
        again = scorer.prepare(ROWS, generate=GENERATION)
        rescored = scorer.score(ROWS, synthetic="prepared", reference_set=again.reference_set)
    assert again.synthetic_answers_generated == 0
    assert again.reference_set == first.reference_set
    assert again.synthetic_answers == first.synthetic_answers
    assert [item.scores["smile"].score for item in rescored] == [item.scores["smile"].score for item in scored]
