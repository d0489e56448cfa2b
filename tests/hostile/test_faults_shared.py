"""The memory that processes share is damaged, emptied and full while they score: no score changes, none is lost."""

import contextlib
import mmap
import os
import random
import threading
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from tests.support.figures import TakeFigure
from tests.support.servers.server_process import ServerProcess
from tests.support.servers.several_processes import channels_by_process, process_ids, shared_memory, wait_until

from gradewire_proto.v1 import scoring_pb2, scoring_pb2_grpc, types_pb2

METRICS = [
    types_pb2.MetricSpec(smile=types_pb2.SmileParameters()),
    types_pb2.MetricSpec(smile=types_pb2.SmileParameters(threshold=0.5)),
    types_pb2.MetricSpec(smile=types_pb2.SmileParameters(preset=types_pb2.SMILE_PRESET_FAST)),
    types_pb2.MetricSpec(sbert=types_pb2.SbertParameters()),
    types_pb2.MetricSpec(sbert=types_pb2.SbertParameters(threshold=0.5)),
    types_pb2.MetricSpec(bertscore=types_pb2.BertscoreParameters()),
    types_pb2.MetricSpec(correctness=types_pb2.CorrectnessParameters(features_only=True)),
    types_pb2.MetricSpec(exact_match=types_pb2.ExactMatchParameters()),
]
PARTS = 4
"""Calls that together score all items."""
SCENES = ["a red bus", "two small dogs", "an old man", "the green hills", "a cup of tea"]


def score(channel: grpc.Channel, first: int, count: int) -> list[float]:
    items = [
        types_pb2.Item(
            question=f"what is in picture {number}?",
            references=[f"{SCENES[number % 5]} by house {number % 70}"],
            prediction=f"I see {SCENES[number % 5]} and {SCENES[number % 3]}, close to house number {number}.",
        )
        for number in range(first, first + count)
    ]
    stub = scoring_pb2_grpc.ScoringStub(channel)
    reply = stub.Score(scoring_pb2.ScoreRequest(items=items, metrics=METRICS), timeout=120)
    results = [result for item in reply.items for result in item.results]
    assert all(result.status == types_pb2.STATUS_OK for result in results)
    return [result.score for result in results]


@contextlib.contextmanager
def damaging(path: Path, chance: random.Random) -> Iterator[None]:
    """Flip bits, write bytes from elsewhere, and empty the memory, over and over."""
    ended = threading.Event()

    def damage() -> None:
        with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
            while not ended.wait(0.01):
                for _ in range(len(memory) >> 18):  # so few that most values are still intact
                    memory[chance.randrange(len(memory))] ^= 1 << chance.randrange(8)
                if chance.random() < 0.1:
                    here, there = (chance.randrange(len(memory) - 4096) for _ in range(2))
                    memory[here : here + 4096] = memory[there : there + 4096]
                if chance.random() < 0.002:
                    memory[:] = bytes(len(memory))

    thread = threading.Thread(target=damage)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@pytest.fixture
def chance() -> random.Random:
    return random.Random(47)  # noqa: S311 - nothing secret


@pytest.mark.parametrize(
    ("processes", "count"), [(2, 40), pytest.param(4, 250, marks=pytest.mark.hostile, id="4-of-1000-rows")]
)
@pytest.mark.parametrize(
    "shared_max_bytes", [pytest.param("1MiB", id="full"), pytest.param("64MiB", marks=pytest.mark.hostile, id="large")]
)
def test_shared_memory_that_is_damaged_changes_no_score(
    tmp_path: Path, chance: random.Random, processes: int, count: int, shared_max_bytes: str, figure: TakeFigure
) -> None:
    small = {"memory_max_bytes": "1MiB", "remembered_results_max_bytes": "1MiB", "disk_directory": tmp_path / "store"}
    with (
        ServerProcess(tmp_path, processes=1, judge_backend="none") as one,
        grpc.insecure_channel(one.address) as channel,
    ):
        expected = [value for part in range(PARTS) for value in score(channel, part * count, count)]
    with (
        ServerProcess(
            tmp_path, processes=processes, judge_backend="none", shared_max_bytes=shared_max_bytes, **small
        ) as server,
        channels_by_process(server.address, count=processes) as channels,
    ):
        memory = shared_memory(server.pid)
        pids = process_ids(server.pid)
        with pytest.raises(PermissionError):
            os.truncate(memory, 0)
        changed = scored = 0
        with damaging(memory, chance):
            for turn in range(PARTS * processes):
                part = turn % PARTS
                # In each round another process scores a part, so that processes read what others wrote.
                channel = list(channels.values())[(turn + turn // PARTS) % processes]
                found = score(channel, part * count, count)
                known = expected[part * count * len(METRICS) : (part + 1) * count * len(METRICS)]
                changed += sum(abs(a - b) > 2e-4 for a, b in zip(found, known, strict=True))
                scored += len(found)
        where = f"shared memory of {shared_max_bytes} damaged under {processes} processes"
        assert figure(f"{where}: scores changed, of {scored}", changed, bound="== 0").holds
        assert figure(f"{where}: processes lost", len(set(pids) - set(process_ids(server.pid))), bound="== 0").holds
        assert server.http("/healthz")[1]["degraded"] == []
        assert memory.stat().st_blocks * 512 <= memory.stat().st_size <= int(shared_max_bytes[:-3]) << 20
        wait_until(
            lambda: server.samples()["gradewire_engine_shared_found_values_total"] > 0
        )  # it was of use meanwhile
