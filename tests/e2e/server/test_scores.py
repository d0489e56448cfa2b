"""A real server with the real encoder: bad input beside good, TLS and tokens, one score however it is asked for."""

import asyncio
import json
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from grpc import aio
from tests.support.servers.in_process import serving
from tests.support.servers.server_process import ServerProcess
from tests.support.servers.wire import EXACT, SBERT, SMILE, error_of, item, request

from gradewire_proto.v1 import references_pb2, references_pb2_grpc, scoring_pb2, scoring_pb2_grpc, types_pb2
from gradewire_server.backends import open_handlers
from gradewire_server.settings.server import Settings

TOLERANCE = 2e-4
FAST = types_pb2.MetricSpec(smile=types_pb2.SmileParameters(preset=types_pb2.SMILE_PRESET_FAST))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, minilm: Path) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path_factory.mktemp("server"), model_repository=minilm) as running:
        yield running


async def score(server: ServerProcess, asked: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
    async with aio.insecure_channel(server.address, options=[("grpc.max_receive_message_length", 1 << 25)]) as channel:
        reply: scoring_pb2.ScoreResponse = await scoring_pb2_grpc.ScoringStub(channel).Score(asked)
        return reply


async def test_bad_items_have_their_status_and_neighbours_their_score(server: ServerProcess) -> None:
    megabyte = "the large brown dog barked at nine cats " * 26_000
    assert len(megabyte) > 1_000_000
    items = [
        item("a big cat", "the cat"),
        types_pb2.Item(prediction="no references"),
        item("blank reference", "fine", "  "),
        item("", "the cat"),
        item(megabyte, "nine cats"),
        item("nul \0 in the cat", "the \0 cat"),
        item("...", "the cat"),
        item("a big cat", "the cat"),
    ]
    reply = await score(server, request(*items, metrics=(SMILE, FAST, SBERT, EXACT)))
    names = [[types_pb2.Status.Name(result.status) for result in part.results] for part in reply.items]
    assert names == [
        ["STATUS_OK"] * 4,
        ["STATUS_INVALID_INPUT"] * 4,
        ["STATUS_INVALID_INPUT"] * 4,
        ["STATUS_EMPTY_PREDICTION"] * 4,
        *[["STATUS_OK"] * 4] * 4,
    ]
    for result in reply.items[4].results[:3]:
        assert types_pb2.WARNING_TRUNCATED in result.warnings
    first, last = reply.items[0].results, reply.items[7].results
    assert [result.score for result in first] == [result.score for result in last]


async def test_the_same_item_scores_the_same_by_every_way(server: ServerProcess, tmp_path: Path, minilm: Path) -> None:
    items = [
        item("It was a big cat that slept on the sofa all day.", "the cat", "a large cat"),
        item("Paris, of course", "the capital of France is Paris"),
        item("42", "forty-two", "42"),
    ]
    metrics = (SMILE, FAST, SBERT)
    together = await score(server, request(*items, metrics=metrics))
    expected = [[result.score for result in part.results] for part in together.items]
    alone = [
        [result.score for result in (await score(server, request(one, metrics=metrics))).items[0].results]
        for one in items
    ]
    streamed: dict[tuple[int, int], float] = {}
    async with aio.insecure_channel(server.address) as channel:
        messages = [
            scoring_pb2.ScoreStreamRequest(config=scoring_pb2.ScoreStreamConfig(metrics=metrics)),
            *(scoring_pb2.ScoreStreamRequest(items=scoring_pb2.ScoreStreamItems(items=[one])) for one in items),
        ]
        async for reply in scoring_pb2_grpc.ScoringStub(channel).ScoreStream(iter(messages)):
            for part in reply.items:
                streamed |= {(part.index, result.metric_index): result.score for result in part.results}
    async with open_handlers(Settings.load(disk_directory=tmp_path, model_repository=minilm)) as handlers:
        inside = await handlers.score(request(*items, metrics=metrics))
    for index, row in enumerate(expected):
        assert alone[index] == pytest.approx(row, abs=TOLERANCE)
        assert [streamed[index, metric] for metric in range(3)] == pytest.approx(row, abs=TOLERANCE)
        assert [result.score for result in inside.items[index].results] == pytest.approx(row, abs=TOLERANCE)


async def test_prepared_references_are_not_computed_again(server: ServerProcess) -> None:
    entries = [
        references_pb2.ReferenceEntry(
            question=f"What is on shelf {number}?",
            references=[f"jar number {number}", "a jar"],
            synthetic_answers=[f"On shelf {number} is jar number {number}.", "There is a jar."],
        )
        for number in range(20)
    ]
    prepared = types_pb2.SmileParameters(synthetic=types_pb2.SYNTHETIC_MODE_PREPARED)
    metric = types_pb2.MetricSpec(smile=prepared)
    async with aio.insecure_channel(server.address) as channel:
        stub = references_pb2_grpc.ReferencesStub(channel)
        asked = references_pb2.PrepareRequest(entries=entries, metrics=[metric])
        steps = [step async for step in stub.Prepare(asked)]
    assert steps[-1].complete
    assert steps[-1].synthetic_answers_stored == 40
    assert steps[-1].cache_hits.computed > 0
    answer = types_pb2.Item(question=entries[3].question, references=entries[3].references, prediction="jar")
    reply = await score(
        server,
        scoring_pb2.ScoreRequest(items=[answer], metrics=[metric], reference_set=steps[-1].reference_set),
    )
    result = reply.items[0].results[0]
    assert result.status == types_pb2.STATUS_OK
    assert result.cache_hits.computed <= 2, "the prediction, raw and normalised"


async def test_nothing_of_the_requests_is_in_the_log(server: ServerProcess) -> None:
    await score(server, request(item("unmistakable prediction", "unmistakable reference", item_id="unmistakable")))
    assert "unmistakable" not in json.dumps(server.log())


def make_certificate(directory: Path) -> None:
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    files = ["-keyout", directory / "key.pem", "-out", directory / "cert.pem"]
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *names, *files]
    subprocess.run(made, check=True, capture_output=True)


async def test_tls_with_client_certificates_and_tokens(tmp_path: Path, minilm: Path) -> None:
    await asyncio.to_thread(make_certificate, tmp_path)
    cert, key = (tmp_path / name for name in ("cert.pem", "key.pem"))
    pair = key.read_bytes(), cert.read_bytes()
    settings = {"tls_cert": cert, "tls_key": key, "tls_client_ca": cert, "auth_tokens": "right,other", "http_port": ""}
    asked = request(item(), metrics=(EXACT,))
    async with serving(tmp_path, model_repository=minilm, **settings) as (port, _):
        address = f"localhost:{port}"
        known = grpc.ssl_channel_credentials(cert.read_bytes(), *pair)
        async with aio.secure_channel(address, known) as channel:
            stub = scoring_pb2_grpc.ScoringStub(channel)
            reply = await stub.Score(asked, metadata=[("authorization", "Bearer right")])
            assert reply.items[0].results[0].status == types_pb2.STATUS_OK
            with pytest.raises(aio.AioRpcError) as caught:
                await stub.Score(asked, metadata=[("authorization", "Bearer wrong")])
            assert error_of(caught)[0] is grpc.StatusCode.UNAUTHENTICATED
        unknown = grpc.ssl_channel_credentials(cert.read_bytes())
        for channel in (aio.secure_channel(address, unknown), aio.insecure_channel(address)):
            async with channel:
                with pytest.raises(aio.AioRpcError) as caught:
                    await scoring_pb2_grpc.ScoringStub(channel).Score(
                        asked, metadata=[("authorization", "Bearer right")]
                    )
                assert error_of(caught)[0] is grpc.StatusCode.UNAVAILABLE


async def test_a_server_without_models_says_how_to_get_them_and_does_what_it_can(tmp_path: Path) -> None:
    async with (
        serving(tmp_path, model_repository=tmp_path / "none") as (port, _),
        aio.insecure_channel(f"127.0.0.1:{port}") as channel,
    ):
        stub = scoring_pb2_grpc.ScoringStub(channel)
        reply = await stub.Score(request(item("the cat", "The cat!"), metrics=(EXACT, SMILE)))
        assert [result.status for result in reply.items[0].results] == [
            types_pb2.STATUS_OK,
            types_pb2.STATUS_MODEL_UNAVAILABLE,
        ]
        with pytest.raises(aio.AioRpcError) as caught:
            await stub.Score(request(item(), metrics=(SMILE,)))
        code, details, _ = error_of(caught)
        assert code is grpc.StatusCode.FAILED_PRECONDITION
        assert "gradewire models build all-MiniLM-L6-v2" in details
        assert str(tmp_path) not in details, "paths of the server are its own affair"


async def test_a_large_batch_without_enough_time_is_answered_with_timeouts(tmp_path: Path, minilm: Path) -> None:
    words = [" ".join(f"w{number}x{word}" for word in range(60)) for number in range(240)]
    asked = request(*[item(text, "a b c", "d e") for text in words], metrics=(SMILE, EXACT))
    # The server's clock alone measures the 4 s: a caller whose machine is busy may read the reply later.
    with ServerProcess(tmp_path, model_repository=minilm, max_deadline_s=4) as server:
        async with aio.insecure_channel(server.address) as channel:
            reply = await scoring_pb2_grpc.ScoringStub(channel).Score(asked, timeout=60)
    found = Counter(types_pb2.Status.Name(part.results[0].status) for part in reply.items)
    assert found["STATUS_TIMEOUT"] > 120, "the encoder cannot do thousands of windows in the time"
    assert set(found) <= {"STATUS_TIMEOUT", "STATUS_OK"}
    assert types_pb2.Status.Name(reply.items[0].results[1].status) == "STATUS_OK"
