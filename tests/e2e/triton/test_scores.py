"""The same rows through Triton and in the process, both from empty caches: the same scores, and one cache for both."""

import signal
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from grpc import aio
from tests.oracle.rows import Row, oracle_rows
from tests.support.servers.server_process import FreshServerProcess, ServerProcess
from tests.support.servers.triton import TritonServer
from tests.support.servers.wire import EXACT, SBERT, SMILE, item, request

from gradewire_proto.v1 import scoring_pb2, scoring_pb2_grpc, types_pb2

MODEL = "all-MiniLM-L6-v2"
TOLERANCE = 2e-4
# Without a grader, whose rows Triton counts apart.
CORRECTNESS = types_pb2.MetricSpec(correctness=types_pb2.CorrectnessParameters(grader="none"))
USUAL = types_pb2.MetricSpec(correctness=types_pb2.CorrectnessParameters())
FAST = types_pb2.MetricSpec(smile=types_pb2.SmileParameters(preset=types_pb2.SMILE_PRESET_FAST))


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    """Every kind of row once or more: composed, at the limits, special, and some of the project's examples."""
    every = oracle_rows()
    chosen = every[:60] + every[300:320]
    assert any(len(row.prediction) > 2000 for row in chosen)
    return chosen


@pytest.fixture(scope="module")
def through_triton(
    tmp_path_factory: pytest.TempPathFactory, minilm: Path, triton: TritonServer
) -> Iterator[ServerProcess]:
    directory = tmp_path_factory.mktemp("through")
    # A fork would have the session of the process that it is a fork of.
    with FreshServerProcess(directory, model_repository=minilm, backend="triton", triton_url=triton.url) as server:
        yield server


@pytest.fixture(scope="module")
def in_process(tmp_path_factory: pytest.TempPathFactory, minilm: Path) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path_factory.mktemp("inside"), model_repository=minilm) as server:
        yield server


async def score(server: ServerProcess, rows: list[Row], *metrics: types_pb2.MetricSpec) -> scoring_pb2.ScoreResponse:
    asked = request(*(item(row.prediction, *row.references) for row in rows), metrics=metrics)
    async with aio.insecure_channel(server.address) as channel:
        reply: scoring_pb2.ScoreResponse = await scoring_pb2_grpc.ScoringStub(channel).Score(asked)
        return reply


def computed(server: ServerProcess) -> float:
    """Texts that the server's encoder has computed so far."""
    with urllib.request.urlopen(f"http://127.0.0.1:{server.http_port}/metrics", timeout=5) as reply:
        lines = reply.read().decode().splitlines()
    return sum(
        float(line.split()[-1]) for line in lines if line.startswith('gradewire_engine_texts_total{source="comp')
    )


def sources(reply: scoring_pb2.ScoreResponse) -> Counter[str]:
    total: Counter[str] = Counter()
    for part in reply.items:
        for result in part.results:
            for field, value in result.cache_hits.ListFields():
                total[field.name] += value
    return total


async def test_the_same_rows_score_the_same_and_every_text_is_computed_once(
    through_triton: ServerProcess, in_process: ServerProcess, triton: TritonServer, rows: list[Row]
) -> None:
    for metrics in ((SBERT,), (FAST,), (SMILE, EXACT, CORRECTNESS)):
        inferences, remote, local = triton.inference_count(MODEL), computed(through_triton), computed(in_process)
        there, here = [await score(server, rows, *metrics) for server in (through_triton, in_process)]
        rise = computed(through_triton) - remote
        triton.wait_for_inference_count(MODEL, inferences + rise)
        inferences = triton.inference_count(MODEL) - inferences
        assert inferences == rise
        assert inferences == computed(in_process) - local > 0
        if metrics == (SBERT,):
            assert inferences == len({text for row in rows for text in (row.prediction, *row.references)})
        assert there.provenance == here.provenance
        for one, other in zip(there.items, here.items, strict=True):
            for result, expected in zip(one.results, other.results, strict=True):
                assert (result.status, list(result.warnings)) == (expected.status, list(expected.warnings))
                assert result.status == types_pb2.STATUS_OK
                assert abs(result.score - expected.score) < TOLERANCE


async def test_the_default_of_correctness_has_the_same_grader_and_score(
    through_triton: ServerProcess, in_process: ServerProcess, rows: list[Row]
) -> None:
    there, here = [await score(server, rows, USUAL) for server in (through_triton, in_process)]
    assert there.provenance == here.provenance
    assert here.provenance[0].grader_model == "grader-mini"
    apart = [
        abs(one.results[0].score - other.results[0].score) for one, other in zip(there.items, here.items, strict=True)
    ]
    assert max(apart) < TOLERANCE


def test_no_session_is_created_in_front_of_triton(through_triton: ServerProcess, in_process: ServerProcess) -> None:
    maps = [Path(f"/proc/{server._running.pid}/maps").read_text() for server in (through_triton, in_process)]
    assert ["onnxruntime" in text for text in maps] == [False, True]


@pytest.mark.parametrize("first", ["embedded", "triton"])
async def test_what_one_has_computed_is_a_hit_for_the_other(
    first: str, tmp_path: Path, minilm: Path, triton: TritonServer, rows: list[Row]
) -> None:
    second = "triton" if first == "embedded" else "embedded"
    replies = []
    for backend in (first, second):
        inferences = triton.inference_count(MODEL)
        settings = {"model_repository": minilm, "backend": backend, "triton_url": triton.url}
        with ServerProcess(tmp_path, **settings) as server:
            inferences = triton.inference_count(MODEL)
            replies.append(await score(server, rows, SBERT))
            if backend == first == "triton":
                triton.wait_for_inference_count(MODEL, inferences + 1)
            else:
                assert triton.inference_count(MODEL) == inferences
            server.signal(signal.SIGTERM)
            assert server.wait() == 0
    assert sources(replies[0])["computed"] > 0
    # Parts of a large request find in memory, or are about to, what others of its parts read from the disk.
    assert "disk" in sources(replies[1])
    assert set(sources(replies[1])) <= {"disk", "memory", "joined"}
    for one, other in zip(*(reply.items for reply in replies), strict=True):
        assert one.results[0].score == other.results[0].score
