"""Requests to a gateway on a real socket: what is answered, what is refused and how, and callers that go away."""

import asyncio
import json
import os
import signal
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import httpx2
import pytest
from google.protobuf import json_format
from tests.support.servers.gateway import (
    JSON,
    LINES,
    SCORE,
    SCORE_STREAM,
    RunningGateway,
    gateway_over,
    gateway_over_method,
)
from tests.support.servers.wire import EXACT, SBERT, SMILE, Wire, item, request, until, wire_server

from gradewire_gateway import upstream
from gradewire_proto.v1 import scoring_pb2
from gradewire_proto.wire_rules import REQUEST_ID_KEY
from gradewire_server.settings.limits import Capacity

ASKED = json_format.MessageToDict(request(item(), metrics=(EXACT,)))


def problem(reply: httpx2.Response) -> tuple[int, str, str]:
    """Status, code and field of a problem, whose form is checked."""
    assert reply.headers["content-type"] == "application/problem+json"
    body = reply.json()
    assert body["status"] == reply.status_code
    assert body["requestId"] == reply.headers["x-request-id"]
    assert body["title"]
    assert body["detail"]
    return reply.status_code, body["code"], body.get("field", "")


async def test_a_method_answers_as_grpc_does(wire: Wire, gateway: RunningGateway) -> None:
    asked = request(item("It was a big cat."), item(""), metrics=(SMILE, EXACT))
    asked.omit_diagnostics = True
    reply = await gateway.post(SCORE, json_format.MessageToJson(asked))
    assert reply.status_code == 200
    assert reply.headers["content-type"] == "application/json"
    ours = json_format.Parse(reply.content, scoring_pb2.ScoreResponse())
    theirs = await wire.scoring.Score(asked)
    for message in (ours, theirs):
        message.ClearField("server_s")
    assert ours == theirs


async def test_names_of_fields_may_be_those_of_the_proto(gateway: RunningGateway) -> None:
    reply = await gateway.post(SCORE, {"items": [], "omit_diagnostics": True})
    assert reply.status_code == 200


async def test_the_request_id_is_the_server_s_too(wire: Wire, gateway: RunningGateway) -> None:
    reply = await gateway.post(SCORE, ASKED, x_request_id="mine-1")
    assert reply.headers["x-request-id"] == "mine-1"
    made = (await gateway.post(SCORE, ASKED, x_request_id="not one")).headers["x-request-id"]
    assert made.startswith("http-")
    assert [line["request_id"] for line in await wire.log_lines()] == ["mine-1", made]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ("", ""),
        ("{", ""),
        ("[]", ""),
        ('{"a": 1, "a": 2}', ""),
        (b"\xff\xfe", ""),
        ("[" * 90_000, ""),
        ('{"items": [{"nope": 1}]}', "items[0].nope"),
        ('{"nope": 1}', "nope"),
        ('{"items": 7}', "items"),
        ('{"items": [{}, {"id": 7}]}', "items[1].id"),
        ('{"items": [{}], "metrics": [{"smile": {}, "sbert": {}}]}', "metrics[0]"),
        ('{"items": [{"id": "\\ud800"}]}', "items[0].id"),
        ('{"\\ud800": 0}', "?"),
        ('{"priority": "\\ud800"}', "priority"),
        ('{"items": [{"\\ud800": 0}]}', "items[0].?"),
        ('{"items": [{}], "metrics": [{"smile": {"preset": 77}}]}', "metrics[0].smile.preset"),
    ],
)
async def test_what_cannot_be_used_is_named(gateway: RunningGateway, body: bytes | str, field: str) -> None:
    reply = await gateway.post(SCORE, body)
    assert problem(reply) == (400, "invalid_argument", field), reply.text


@pytest.mark.parametrize(
    ("path", "method", "headers", "expected"),
    [
        ("/nope", "POST", JSON, (404, "not_found")),
        (SCORE, "GET", {}, (405, "unimplemented")),
        ("/healthz", "POST", JSON, (405, "unimplemented")),
        (SCORE, "POST", {"content-type": "text/plain"}, (415, "invalid_argument")),
        (SCORE, "POST", {}, (415, "invalid_argument")),
        (SCORE, "POST", JSON | {"content-encoding": "gzip"}, (415, "invalid_argument")),
        (SCORE_STREAM, "POST", JSON, (415, "invalid_argument")),
        (SCORE, "POST", JSON | {"connect-timeout-ms": "soon"}, (400, "invalid_argument")),
        (SCORE, "POST", JSON | {"connect-timeout-ms": "0"}, (400, "invalid_argument")),
    ],
)
async def test_what_is_refused(
    gateway: RunningGateway, path: str, method: str, headers: dict[str, str], expected: tuple[int, str]
) -> None:
    reply = await gateway.client.request(method, path, content="{}", headers=headers)
    assert problem(reply)[:2] == expected
    if expected[0] == 405:
        assert reply.headers["allow"]


async def test_a_body_that_is_too_large_is_refused_before_it_is_read(gateway: RunningGateway) -> None:
    async def unannounced() -> Any:
        for _ in range(11):
            yield b" " * 10_000

    assert problem(await gateway.post(SCORE, " " * 100_001))[0] == 413
    reply = await gateway.client.post(SCORE, content=unannounced(), headers=JSON)
    assert problem(reply)[:2] == (413, "resource_exhausted")
    assert (await gateway.post(SCORE, ASKED)).status_code == 200


async def test_bodies_share_their_memory(wire: Wire) -> None:
    async with gateway_over(f"127.0.0.1:{wire.port}", max_bytes_in_flight=1000) as gateway:
        reply = await gateway.post(SCORE, " " * 1001)
        assert problem(reply)[:2] == (429, "resource_exhausted")
        assert reply.headers["retry-after"] == "1"
        assert (await gateway.post(SCORE, ASKED)).status_code == 200, "what was held is given back"


async def test_a_body_that_does_not_come_is_not_waited_for(wire: Wire) -> None:
    async with gateway_over(f"127.0.0.1:{wire.port}", body_s=0.2) as gateway:
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        head = (
            f"POST {SCORE} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n"
        )
        writer.write(head.encode() + b"{")
        assert (await asyncio.wait_for(reader.readline(), 10)).startswith(b"HTTP/1.1 408 ")
        writer.close()


async def test_one_request_too_many_is_told_to_come_back(wire: Wire) -> None:
    gate: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    wire.engine.before = lambda _model: asyncio.shield(gate)
    held = json_format.MessageToDict(request(item(), metrics=(SBERT,)))
    async with gateway_over(f"127.0.0.1:{wire.port}", max_requests=1) as gateway:
        first = asyncio.create_task(gateway.post(SCORE, held))
        await until(lambda: any(kind == "embed" for kind, *_ in wire.engine.calls))
        assert problem(await gateway.post(SCORE, ASKED))[:2] == (429, "resource_exhausted")
        gate.set_result(None)
        assert (await first).status_code == 200


async def test_overload_of_the_server_says_when_to_come_back() -> None:
    async with wire_server(capacity=Capacity(max_items=1)) as wire, gateway_over(f"127.0.0.1:{wire.port}") as gateway:
        gate: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        wire.engine.before = lambda _model: asyncio.shield(gate)
        held = json_format.MessageToDict(request(item(), metrics=(SBERT,)))
        first = asyncio.create_task(gateway.post(SCORE, held))
        await until(lambda: any(kind == "embed" for kind, *_ in wire.engine.calls))
        reply = await gateway.post(SCORE, held)
        gate.set_result(None)
        assert (await first).status_code == 200
    assert problem(reply)[:2] == (429, "resource_exhausted")
    assert reply.json()["retryAfterS"] > 0
    assert int(reply.headers["retry-after"]) >= reply.json()["retryAfterS"]


async def test_the_deadline_of_the_header_is_the_call_s(wire: Wire, gateway: RunningGateway) -> None:
    gate: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    wire.engine.before = lambda _model: asyncio.shield(gate)
    held = json_format.MessageToDict(request(item(), metrics=(SBERT,)))
    reply = await gateway.post(SCORE, held, connect_timeout_ms="300")
    gate.set_result(None)
    if reply.status_code == 200:  # the server answers shortly before the deadline, unless the machine is busy
        assert reply.json()["items"][0]["results"][0]["status"] == "STATUS_TIMEOUT"
    else:
        assert problem(reply)[:2] == (504, "deadline_exceeded")


@pytest.mark.parametrize("path", [SCORE, "/gradewire.v1.References/Prepare", SCORE_STREAM])
async def test_a_caller_that_goes_away_cancels_the_call(wire: Wire, gateway: RunningGateway, path: str) -> None:
    gate: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    wire.engine.before = lambda _model: asyncio.shield(gate)
    asked = json_format.MessageToDict(request(item(), metrics=(SBERT,)))
    entries = {"entries": [{"references": ["a"]}], "metrics": asked["metrics"]}
    lines = [{"config": {"metrics": asked["metrics"]}}, {"items": {"items": asked["items"]}}]
    stream = path == SCORE_STREAM
    body = "\n".join(map(json.dumps, lines)) if stream else json.dumps(entries if "Prepare" in path else asked)

    async def call() -> None:
        async with gateway.client.stream("POST", path, content=body, headers=LINES if stream else JSON) as reply:
            async for _ in reply.aiter_bytes():
                pass

    calling = asyncio.create_task(call())
    await until(lambda: any(kind == "embed" for kind, *_ in wire.engine.calls))
    calling.cancel()
    await asyncio.wait((calling,))
    await asyncio.wait_for(wire.calls.idle(), 10)
    gate.set_result(None)
    lines_logged = await wire.log_lines()
    assert [line["code"] for line in lines_logged] == ["CANCELLED"]


async def test_a_server_that_is_away_is_told_without_its_address() -> None:
    async with gateway_over("127.0.0.1:1") as gateway:
        reply = await gateway.post(SCORE, ASKED)
        assert problem(reply)[:2] == (503, "unavailable")
        assert "127.0.0.1" not in reply.text
        health = await gateway.client.get("/healthz")
        assert (health.status_code, health.json()) == (503, {"status": "SERVER_UNREACHABLE"})


async def test_health_is_the_server_s(wire: Wire, gateway: RunningGateway) -> None:
    health = await gateway.client.get("/healthz")
    assert (health.status_code, health.json()) == (200, {"status": "SERVING"})
    wire.lifecycle.draining()
    assert (await gateway.client.get("/healthz")).status_code == 503


class Duplex:
    """A stream that is written and read side by side, which few libraries do."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self.writer = writer

    @classmethod
    async def open(cls, gateway: RunningGateway) -> "Duplex":
        duplex = cls(*await asyncio.open_connection("127.0.0.1", gateway.port))
        head = f"POST {SCORE_STREAM} HTTP/1.1\r\nhost: localhost\r\ncontent-type: {LINES['content-type']}\r\n"
        duplex.writer.write(f"{head}transfer-encoding: chunked\r\n\r\n".encode())
        return duplex

    def write(self, data: bytes) -> None:
        """Sends a piece of the body; an empty one ends it."""
        self.writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    async def head(self) -> bytes:
        return await asyncio.wait_for(self._reader.readuntil(b"\r\n\r\n"), 10)

    async def line(self) -> Any:
        """The next piece of the answer; None at its end."""
        size = int(await asyncio.wait_for(self._reader.readline(), 10), 16)
        data = await self._reader.readexactly(size + 2)
        return json.loads(data) if size else None


CONFIG = json.dumps({"config": {"metrics": ASKED["metrics"]}}).encode()
ITEMS = json.dumps({"items": {"items": ASKED["items"]}}).encode()


async def test_a_stream_answers_line_by_line_while_it_is_written(gateway: RunningGateway) -> None:
    duplex = await Duplex.open(gateway)
    duplex.write(CONFIG + b"\r\n\n")
    head = await duplex.head()
    assert head.startswith(b"HTTP/1.1 200 ")
    assert b"content-type: application/x-ndjson\r\n" in head
    assert (await duplex.line())["provenance"], "the first answer comes before an item is sent"
    duplex.write(ITEMS[:20])
    duplex.write(ITEMS[20:] + b"\n")
    assert (await duplex.line())["items"][0]["results"], "and so on, while the body is open"
    duplex.write(ITEMS)
    duplex.write(b"")
    assert (await duplex.line())["items"][0]["index"] == "1", "the last line needs no end"
    assert await duplex.line() is None
    duplex.writer.close()


async def test_a_stream_may_be_sent_as_a_whole(gateway: RunningGateway) -> None:
    reply = await gateway.client.post(SCORE_STREAM, content=CONFIG + b"\n" + ITEMS, headers=LINES)
    first, second = map(json.loads, reply.text.splitlines())
    assert first["provenance"]
    assert second["items"][0]["results"][0]["status"] == "STATUS_OK"


async def test_a_stream_that_fails_at_once_is_a_problem(gateway: RunningGateway) -> None:
    for body, field in (('{"nope": 1}', "nope"), ('{"config": {"metrics": [{"smile": {"preset": 77}}]}}', "preset")):
        reply = await gateway.client.post(SCORE_STREAM, content=body, headers=LINES)
        assert problem(reply)[:2] == (400, "invalid_argument")
        assert reply.json()["field"].endswith(field)


async def test_nothing_is_written_to_a_stream_before_the_server_accepts_it() -> None:
    """grpc.aio reports INTERNAL instead of the reason for a refusal if the stream ends during a write."""
    arrived: list[bool] = []

    async def refuse(_: object, context: Any) -> None:
        read = asyncio.create_task(context.read())
        done, _ = await asyncio.wait((read,), timeout=0.3)
        arrived.append(bool(done))
        context.set_trailing_metadata(((REQUEST_ID_KEY, "1"),))
        await context.abort(grpc.StatusCode.UNAUTHENTICATED, "send a token")

    async with gateway_over_method("ScoreStream", grpc.stream_stream_rpc_method_handler(refuse)) as gateway:
        reply = await gateway.client.post(SCORE_STREAM, content=CONFIG + b"\n" + ITEMS, headers=LINES)
    assert problem(reply)[:2] == (401, "unauthenticated")
    assert arrived == [False]


@pytest.mark.parametrize("sends_metadata", [True, False])
async def test_a_stream_to_a_server_that_does_not_say_that_it_accepts_goes_on(
    sends_metadata: bool,  # noqa: FBT001 - a column
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(upstream, "_ACCEPTED_S", 0.3)
    monkeypatch.setattr(upstream, "_ENDED_S", 0.3)

    async def answer(_: object, context: Any) -> None:
        if sends_metadata:
            await context.send_initial_metadata(())
        while await context.read() is not grpc.aio.EOF:
            await context.write(scoring_pb2.ScoreStreamResponse().SerializeToString())

    async with gateway_over_method("ScoreStream", grpc.stream_stream_rpc_method_handler(answer)) as gateway:
        reply = await gateway.client.post(SCORE_STREAM, content=CONFIG + b"\n" + ITEMS, headers=LINES)
    assert reply.status_code == 200
    assert len(reply.text.splitlines()) == 2


async def test_a_large_body_waits_neither_past_its_deadline_nor_for_a_caller_who_is_gone(wire: Wire) -> None:
    large = json.dumps(ASKED | {"items": ASKED["items"] * 2000}).encode()
    async with gateway_over(f"127.0.0.1:{wire.port}") as gateway:
        assert (await gateway.client.post(SCORE, content=large, headers=JSON)).status_code == 200
        (child,) = _json_processes()
        os.kill(child, signal.SIGSTOP)
        try:
            reply = await gateway.client.post(SCORE, content=large, headers=JSON | {"connect-timeout-ms": "200"})
            assert problem(reply)[:2] == (504, "deadline_exceeded")
            with pytest.raises(httpx2.ReadTimeout):
                await gateway.client.post(SCORE, content=large, headers=JSON, timeout=0.2)
            await gateway.until_in_flight(0)
        finally:
            os.kill(child, signal.SIGCONT)
        assert (await gateway.client.post(SCORE, content=large, headers=JSON)).status_code == 200


def _json_processes() -> list[int]:
    children = [int(pid) for each in Path("/proc/self/task").glob("*/children") for pid in each.read_text().split()]
    return [pid for pid in children if b"json_work" in Path(f"/proc/{pid}/cmdline").read_bytes()]


async def test_a_stream_that_fails_later_says_so_in_its_last_line(gateway: RunningGateway) -> None:
    duplex = await Duplex.open(gateway)
    duplex.write(CONFIG + b"\n")
    assert (await duplex.head()).startswith(b"HTTP/1.1 200 ")
    assert (await duplex.line())["provenance"]
    duplex.write(b'{"nope": 1}\n')
    error = (await duplex.line())["error"]
    assert (error["code"], error["field"]) == ("invalid_argument", "nope")
    assert error["detail"].startswith("line 2: nope: ")
    assert await duplex.line() is None
    duplex.writer.close()


async def test_a_server_believes_who_asks_on_its_private_socket_alone(wire: Wire) -> None:
    async with gateway_over(f"127.0.0.1:{wire.port}", private=True) as gateway:
        await gateway.post(SCORE, ASKED)
    (line,) = await wire.log_lines()
    assert line["peer"].startswith("ipv4:127.0.0.1:")


async def test_only_names_of_the_loopback_address_reach_it_there(gateway: RunningGateway) -> None:
    for host, status in (("localhost", 200), ("127.0.0.1:8080", 200), ("evil.example", 421)):
        assert (await gateway.client.get("/healthz", headers={"host": host})).status_code == status, host


async def test_only_its_own_names_reach_it(wire: Wire) -> None:
    async with gateway_over(f"127.0.0.1:{wire.port}", names=("localhost", "::1")) as gateway:
        for host, status in (("localhost:1", 200), ("LOCALHOST", 200), ("[::1]:8080", 200), ("evil.example", 421)):
            assert (await gateway.client.get("/healthz", headers={"host": host})).status_code == status, host


async def test_figures_count_by_route_and_status(gateway: RunningGateway) -> None:
    await gateway.post(SCORE, ASKED)
    await gateway.post("/a/path/of/the/caller", ASKED)
    text = (await gateway.client.get("/metrics")).text
    assert f'gradewire_gateway_requests_total{{route="{SCORE}",status="200"}} 1.0' in text
    assert 'gradewire_gateway_requests_total{route="other",status="404"} 1.0' in text


async def test_connections_that_send_no_head_are_closed(wire: Wire) -> None:
    async with gateway_over(f"127.0.0.1:{wire.port}", head_s=0.2) as gateway:
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        writer.write(b"GET /healthz HTTP/1.1\r\n")
        assert await asyncio.wait_for(reader.read(), 10) == b""
        writer.close()
