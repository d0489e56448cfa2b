"""A request to a judge's server that is made in a trace takes it along; another one looks as it always did."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest
from opentelemetry.trace import SpanContext, SpanKind

from gradewire_proto.telemetry.recorded import Call, Recorded, Result
from gradewire_server.judges.remote.http_client import HttpClient
from gradewire_server.settings.judge import RemoteJudgeConfig

ANSWERS = {"/v1/good": b"HTTP/1.1 200 OK", "/v1/bad": b"HTTP/1.1 429 Too Many Requests"}
HEADS: list[str] = []


class Kept:
    """Keeps the spans that end."""

    def __init__(self) -> None:
        self.spans: list[Recorded] = []

    def put(self, spans: Sequence[Recorded], results: Sequence[Result], evaluated: SpanContext | None) -> None:
        del results, evaluated
        self.spans += spans


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    HEADS.append(head.lower())
    writer.write(ANSWERS[head.split()[1]] + b"\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
    await writer.drain()
    writer.close()


@pytest.fixture
async def client() -> AsyncIterator[HttpClient]:
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    made = HttpClient(RemoteJudgeConfig(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", "m"))
    HEADS.clear()
    yield made
    await made.close()
    server.close()
    await server.wait_closed()


async def test_its_span_is_the_parent_of_what_the_judges_server_does(client: HttpClient) -> None:
    kept = Kept()
    with Recorded(Call(kept, None, 7, sampled=True), "call", 0, SpanKind.SERVER):
        await client.get("good")
        await client.get("bad")

    good, bad, call = kept.spans
    assert [head.partition("traceparent: ")[2].partition("\r")[0] for head in HEADS] == [
        f"00-{7:032x}-{span.span_id:016x}-01" for span in (good, bad)
    ]
    assert (good.name, good.kind, good.parent_id) == ("GET", SpanKind.CLIENT, call.span_id)
    assert (good.attributes["http.response.status_code"], good.error) == (200, "")
    assert (bad.attributes["http.response.status_code"], bad.error) == (429, "429")


async def test_without_a_trace_nothing_is_sent_of_one(client: HttpClient) -> None:
    await client.get("good")

    assert "traceparent" not in HEADS[0]
