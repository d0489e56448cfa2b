"""One embedded judge for two server processes: loaded once, asked by both, and neither's end is the other's.

SmolLM2 grades badly: of its verdicts it is shown that they are the same, and that none is lost.
"""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from grpc import aio
from tests.support.judges.prompts import LAVE
from tests.support.judges.smollm2 import NAME, smollm2_repository
from tests.support.servers.forked_process import modules_of
from tests.support.servers.otlp_receiver import otlp_receiver
from tests.support.servers.server_process import ServerProcess
from tests.support.servers.several_processes import ready_processes, wait_until

from gradewire import AsyncClient, Lave, Status
from gradewire_proto.v1 import models_pb2, models_pb2_grpc, scoring_pb2, scoring_pb2_grpc, types_pb2

pytestmark = [pytest.mark.hostile, pytest.mark.restarts]

_WAIT_S = 90.0
_TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
_SLOW = types_pb2.MetricSpec(
    lave=types_pb2.LaveParameters(
        mode=types_pb2.LAVE_MODE_RATIONALE, prompt=LAVE.replace("max_tokens = 6", "max_tokens = 16")
    )
)
_GRADED = (types_pb2.STATUS_OK, types_pb2.STATUS_UNPARSABLE)
_QUICK = types_pb2.MetricSpec(lave=types_pb2.LaveParameters(mode=types_pb2.LAVE_MODE_RATING, prompt=LAVE))


@pytest.fixture(scope="module")
def settings(minilm: Path) -> dict[str, Any]:
    return {"model_repository": minilm, "judge_repository": smollm2_repository(), "judge_model": NAME}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, settings: dict[str, Any]) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path_factory.mktemp("shared"), **settings, processes=2, drain_s=0) as running:
        yield running
        running.signal(signal.SIGTERM)
        assert running.wait() == 0


def _running(module: str, parent: int) -> list[int]:
    """Processes that run a module of ours, among those that one started and those that these started."""
    found = []
    for child, name in modules_of(parent):
        found += [child] * (name == module) + _running(module, child)
    return found


def _workers(server: ServerProcess) -> list[int]:
    return _running("gradewire_server.judges.worker.main", server.pid)


def _hosts(server: ServerProcess) -> list[int]:
    return _running("gradewire_server.judge_host", server.pid)


def _items(name: str, count: int) -> list[types_pb2.Item]:
    return [
        types_pb2.Item(question="What is on the mat?", references=["a cat"], prediction=f"{name} {n} cats and a dog")
        for n in range(count)
    ]


def _channels(server: ServerProcess, count: int) -> list[aio.Channel]:
    """Connections of their own, which the system spreads over the processes."""
    options = (("grpc.use_local_subchannel_pool", 1),)
    return [aio.insecure_channel(server.address, (*options, ("test.number", n))) for n in range(count)]


async def _scored(channel: aio.Channel, items: list[types_pb2.Item], metric: Any) -> tuple[str, list[Any]]:
    """Which process answered, and its results."""
    stub: Any = scoring_pb2_grpc.ScoringStub(channel)
    call = stub.Score(scoring_pb2.ScoreRequest(items=items, metrics=[metric]), timeout=_WAIT_S)
    reply = await call
    process = dict(await call.trailing_metadata()).get("gradewire-process", "alone")
    return process, [item.results[0] for item in reply.items]


async def test_both_ask_one_judge_which_says_what_it_says_to_a_server_alone(
    server: ServerProcess, settings: dict[str, Any], tmp_path: Path
) -> None:
    assert len(_hosts(server)) == 1
    assert _workers(server) == [], "nothing is loaded before somebody asks"
    groups = [_items(f"{number}:", 2) for number in range(4)]
    channels = _channels(server, 16)
    answered = await asyncio.gather(*(_scored(each, groups[n % 4], _QUICK) for n, each in enumerate(channels)))
    assert {process for process, _ in answered} == {"0/2", "1/2"}
    assert len(_workers(server)) == 1
    samples = server.samples()
    assert samples["gradewire_judge_up"] == 1
    assert samples["gradewire_judge_run_seconds_count"] >= 1
    assert samples["gradewire_judge_queue_items"] == 0
    for channel in channels:
        stub: Any = models_pb2_grpc.ModelsStub(channel)
        listed = await stub.List(models_pb2.ListModelsRequest())
        assert {model.state for model in listed.models if model.name == NAME} == {models_pb2.MODEL_STATE_LOADED}
        await channel.close()
    with ServerProcess(tmp_path, **settings, processes=1) as single:
        (channel,) = _channels(single, 1)
        async with channel:
            alone = [(await _scored(channel, group, _QUICK))[1] for group in groups]
    for number, (_, results) in enumerate(answered):
        assert [each.status for each in results] == [types_pb2.STATUS_OK] * 2
        assert [each.score for each in results] == [each.score for each in alone[number % 4]]


async def test_a_server_process_that_is_killed_leaves_the_judge_as_it_is(server: ServerProcess) -> None:
    (channel,) = _channels(server, 1)
    async with channel:
        await _scored(channel, _items("before", 1), _QUICK)
    host, worker = _hosts(server), _workers(server)
    assert len(worker) == 1
    os.kill(_running("gradewire_server.server_child", server.pid)[0], signal.SIGKILL)
    wait_until(lambda: ready_processes(server) == 1)
    wait_until(lambda: ready_processes(server) == 2)
    channels = _channels(server, 8)
    answered = await asyncio.gather(
        *(_scored(each, _items(f"after {n}", 1), _QUICK) for n, each in enumerate(channels))
    )
    assert {result.status for _, results in answered for result in results} == {types_pb2.STATUS_OK}
    assert (_hosts(server), _workers(server)) == (host, worker)
    for each in channels:
        await each.close()


def _runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def test_a_killed_host_costs_what_it_was_at_work_on_and_the_next_one_answers(server: ServerProcess) -> None:
    channels = _channels(server, 4)
    await _scored(channels[0], _items("warm", 1), _QUICK)
    (host,), (worker,) = _hosts(server), _workers(server)
    asking = [asyncio.create_task(_scored(each, _items(f"lost {n}", 4), _SLOW)) for n, each in enumerate(channels)]
    await asyncio.to_thread(wait_until, lambda: server.samples()["gradewire_judge_queue_items"] >= 4)
    os.kill(host, signal.SIGKILL)
    results = [result for task in asking for result in (await task)[1]]
    lost = [result for result in results if result.status == types_pb2.STATUS_UNAVAILABLE]
    assert lost, "it was at work on something"
    assert {result.status for result in results} <= {types_pb2.STATUS_UNAVAILABLE, *_GRADED}
    assert all(result.retry_after_s > 0 and not result.HasField("score") for result in lost)
    # At once, while the next one starts: it waits.
    again = await asyncio.gather(*(_scored(each, _items(f"again {n}", 1), _QUICK) for n, each in enumerate(channels)))
    assert {result.status for _, group in again for result in group} == {types_pb2.STATUS_OK}
    assert _hosts(server) != [host]
    assert len(_workers(server)) == 1
    # The process that inherits it may take a while to reap it.
    await asyncio.to_thread(wait_until, lambda: not _runs(worker))
    assert server.samples()["gradewire_judge_host_restarts_total"] == 1
    await asyncio.to_thread(wait_until, lambda: not server.http("/healthz")[1]["degraded"])
    for each in channels:
        await each.close()


async def test_a_call_that_is_cancelled_frees_the_judge(server: ServerProcess) -> None:
    (channel,) = _channels(server, 1)
    async with channel:
        asking = asyncio.create_task(_scored(channel, _items("cancelled", 600), _SLOW))
        await asyncio.to_thread(wait_until, lambda: server.samples()["gradewire_judge_queue_items"] >= 50)
        asking.cancel()
        await asyncio.to_thread(wait_until, lambda: server.samples()["gradewire_judge_queue_items"] == 0)
        # In the host too: what comes now is not behind what nobody waits for.
        runs = server.samples()["gradewire_judge_run_seconds_count"]
        _, results = await _scored(channel, _items("at once", 1), _QUICK)
        assert results[0].status == types_pb2.STATUS_OK
        assert server.samples()["gradewire_judge_run_seconds_count"] - runs < 30
    assert asking.cancelled()


async def test_a_restart_of_all_loses_no_verdict(server: ServerProcess) -> None:
    hosts, servers = _hosts(server), _running("gradewire_server.server_child", server.pid)
    asked = 0

    def all_replaced() -> bool:
        now = _running("gradewire_server.server_child", server.pid)
        return not set(hosts) & set(_hosts(server)) and not set(servers) & set(now) and ready_processes(server) == 2

    async with AsyncClient(server.address) as client:
        server.signal(signal.SIGHUP)
        while not await asyncio.to_thread(all_replaced):
            rows = [{"question": "What is on the mat?", "references": ["a cat"], "prediction": f"{asked} small cats"}]
            scored = await client.score(rows, Lave(mode="rating", prompt=LAVE))
            (score,) = scored.items[0].scores.values()
            assert score.status is Status.OK
            asked += 1
    assert asked > 3


async def test_a_host_that_hangs_is_ended_and_nobody_waits_for_ever(server: ServerProcess) -> None:
    channels = _channels(server, 2)
    await _scored(channels[0], _items("well", 1), _QUICK)
    (host,) = _hosts(server)
    os.kill(host, signal.SIGSTOP)
    _, results = await _scored(channels[0], _items("hanging", 1), _QUICK)
    assert results[0].status == types_pb2.STATUS_UNAVAILABLE
    _, results = await _scored(channels[1], _items("after", 1), _QUICK)
    assert results[0].status == types_pb2.STATUS_OK
    assert host not in _hosts(server)
    for each in channels:
        await each.close()


async def test_a_stop_lets_the_judge_answer_what_was_asked(server: ServerProcess) -> None:
    channels = _channels(server, 4)
    await _scored(channels[0], _items("well", 1), _QUICK)
    (host,), (worker,) = _hosts(server), _workers(server)
    asking = [asyncio.create_task(_scored(each, _items(f"late {n}", 8), _SLOW)) for n, each in enumerate(channels)]
    await asyncio.to_thread(wait_until, lambda: server.samples()["gradewire_judge_queue_items"] >= 8)
    server.signal(signal.SIGTERM)  # the last test of this server
    results = [result for task in asking for result in (await task)[1]]
    assert len(results) == 32
    assert {result.status for result in results} <= set(_GRADED)
    assert await asyncio.to_thread(server.wait) == 0
    assert not {host, worker} & set(psutil.pids()), "the judge ends with its server"
    for each in channels:
        await each.close()


async def test_a_trace_reaches_into_the_judge_host(
    settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
    with (
        otlp_receiver() as receiver,
        ServerProcess(tmp_path, **settings, processes=2, otlp_endpoint=receiver.endpoint, drain_s=0) as traced,
    ):
        (channel,) = _channels(traced, 1)
        async with channel:
            stub: Any = scoring_pb2_grpc.ScoringStub(channel)
            request = scoring_pb2.ScoreRequest(items=_items("traced", 1), metrics=[_QUICK])
            await stub.Score(request, metadata=(("traceparent", f"00-{_TRACE}-{'1' * 16}-01"),), timeout=_WAIT_S)
        names = ("judge", "gradewire.internal.JudgeHost/Ask", "judge run")
        spans = await asyncio.to_thread(receiver.trace_with, _TRACE, *names)
        judge, asked, run = (spans[name] for name in names)
        assert asked.parent_id == judge.span_id
        assert run.parent_id == asked.span_id
        traced.signal(signal.SIGTERM)
        assert await asyncio.to_thread(traced.wait) == 0


def test_the_default_follows_the_cores_with_an_embedded_judge(settings: dict[str, Any], tmp_path: Path) -> None:
    program = """
import os, sys
os.sched_getaffinity = lambda _: set(range(4))
from gradewire_cli.server_settings import run_server
sys.exit(run_server({"port": 0, "http_port": 0, "drain_s": 0}, ready=lambda address: print(address)))
"""
    given = {**settings, "disk_directory": tmp_path, "memory_limit": "4GiB"}
    variables = {f"GRADEWIRE_{name.upper()}": str(value) for name, value in given.items()}
    with subprocess.Popen(
        [sys.executable, "-c", program], env=os.environ | variables, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
    ) as serving:
        try:
            assert serving.stdout is not None
            assert serving.stdout.readline()
            assert len(_running("gradewire_server.server_child", serving.pid)) == 2
            assert len(_running("gradewire_server.judge_host", serving.pid)) == 1
            serving.terminate()
            assert serving.wait(_WAIT_S) == 0
        finally:
            serving.kill()
