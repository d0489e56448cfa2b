"""Processes of a server find each other's vectors, vectors of windows and whole results in shared memory."""

import os
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest
from tests.support.servers.server_process import ServerProcess
from tests.support.servers.several_processes import channels_by_process, process_ids, ready_processes, wait_until

from gradewire_proto.v1 import scoring_pb2, scoring_pb2_grpc, types_pb2

SMILE = types_pb2.MetricSpec(smile=types_pb2.SmileParameters())
THRESHOLD = types_pb2.MetricSpec(smile=types_pb2.SmileParameters(threshold=0.5))
CORRECTNESS = types_pb2.MetricSpec(correctness=types_pb2.CorrectnessParameters(features_only=True))
COMPUTED = 'gradewire_engine_texts_total{source="computed"}'
JOINED = 'gradewire_engine_texts_total{source="joined"}'
REMEMBERED = "gradewire_remembered_results_found_total"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, minilm: Path) -> Iterator[ServerProcess]:
    directory = tmp_path_factory.mktemp("several")
    with ServerProcess(directory, model_repository=minilm, judge_backend="none", processes=2, drain_s=0) as running:
        yield running
        running.signal(signal.SIGTERM)
        assert running.wait() == 0


@pytest.fixture
def both(server: ServerProcess) -> Iterator[Sequence[grpc.Channel]]:
    with channels_by_process(server.address) as channels:
        yield tuple(channels.values())


def items(named: str, count: int = 5) -> list[types_pb2.Item]:
    """Items of which every text is of this name, so that two names have equally many texts."""
    return [
        types_pb2.Item(
            question=f"what is {named} {number}?",
            references=[f"the {named} brown dog {number}"],
            prediction=f"It was {named} dog number {number}, which ran over {named} hills and slept at {named} home.",
        )
        for number in range(count)
    ]


def score(
    channel: grpc.Channel, sent: Sequence[types_pb2.Item], *metrics: types_pb2.MetricSpec
) -> list[types_pb2.MetricResult]:
    request = scoring_pb2.ScoreRequest(items=sent, metrics=metrics, priority=scoring_pb2.PRIORITY_BULK)
    reply = scoring_pb2_grpc.ScoringStub(channel).Score(request, timeout=60)
    results = [result for item in reply.items for result in item.results]
    assert all(result.status == types_pb2.STATUS_OK for result in results)
    return results


def counts(server: ServerProcess) -> Mapping[str, float]:
    samples = server.samples()
    return {name: samples.get(name, 0.0) for name in (COMPUTED, JOINED, REMEMBERED)}


def settled(server: ServerProcess) -> Mapping[str, float]:
    """The counts, after a busy process has told its own."""
    found: list[Mapping[str, float]] = []

    def is_settled() -> bool:
        found.append(counts(server))
        time.sleep(0.3)
        return len(found) > 2 and found[-3] == found[-2] == found[-1]

    wait_until(is_settled)
    return found[-1]


def test_a_result_of_one_process_is_given_by_the_other_without_a_look_at_a_text(
    server: ServerProcess, both: Sequence[grpc.Channel]
) -> None:
    one, two = both
    first = score(one, items("red"), SMILE, CORRECTNESS)
    before = settled(server)
    again = score(two, items("red"), SMILE, CORRECTNESS)
    wait_until(lambda: counts(server)[REMEMBERED] == before[REMEMBERED] + len(first))
    assert settled(server)[COMPUTED] == before[COMPUTED]
    for result, known in zip(again, first, strict=True):
        assert result.score == known.score
        assert result.correct == known.correct
        assert (result.smile, result.correctness) == (known.smile, known.correctness)
        assert result.cache_hits.memory == sum(
            getattr(known.cache_hits, field.name) for field in types_pb2.CacheHits.DESCRIPTOR.fields
        )


def test_vectors_of_windows_are_found_by_the_other_process(server: ServerProcess, both: Sequence[grpc.Channel]) -> None:
    one, two = both
    first = score(one, items("green"), SMILE)
    before = settled(server)
    again = score(two, items("green"), THRESHOLD)  # another metric, so that no result is remembered
    after = settled(server)
    assert after == before
    assert [result.score for result in again] == [result.score for result in first]
    for result in again:
        assert result.cache_hits.memory > 5
        assert not result.cache_hits.disk, "the memory is asked before the disk"


def test_texts_under_way_in_one_process_are_not_computed_by_the_other(
    server: ServerProcess, both: Sequence[grpc.Channel]
) -> None:
    score(both[0], items("white", 100), SMILE)  # computes the windows without a name
    before = settled(server)
    score(both[0], items("blue", 100), SMILE)
    alone = settled(server)
    texts = alone[COMPUTED] - before[COMPUTED]
    assert texts > 500
    shares = []
    for name in ("grey", "brown", "pink"):
        with ThreadPoolExecutor(2) as pool:
            results = list(pool.map(lambda channel: score(channel, items(name, 100), SMILE), both))  # noqa: B023 - ends here
        first, second = ([result.score for result in each] for each in results)
        assert first == pytest.approx(second, abs=2e-4)
        together = settled(server)
        assert together[JOINED] > alone[JOINED]
        shares.append((together[COMPUTED] - alone[COMPUTED]) / texts)
        if shares[-1] <= 1.02:
            break
        alone = together
    # On a busy machine both may claim a few texts at the same moment, but not in each try.
    assert 1 <= min(shares) <= 1.02, shares


def test_what_a_killed_process_computed_its_successor_finds(server: ServerProcess) -> None:
    with channels_by_process(server.address) as channels:
        first = score(channels["1/2"], items("black"), SMILE)
    before = settled(server)[COMPUTED]
    os.kill(process_ids(server.pid)[1], signal.SIGKILL)
    wait_until(lambda: ready_processes(server) < 2)
    wait_until(lambda: ready_processes(server) == 2)
    with channels_by_process(server.address) as channels:
        for channel in channels.values():
            assert [result.score for result in score(channel, items("black"), SMILE)] == [
                result.score for result in first
            ]
    assert settled(server)[COMPUTED] == before
