"""A request to a judge's server that is made in a trace takes it along; another one looks as it always did."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from opentelemetry.trace import SpanKind
from tests.support.kept_spans import KeptSpans, attributes_of

from gradewire_server.judges.remote.http_client import HttpClient
from gradewire_server.settings.judge import RemoteJudgeConfig

ANSWERS = {"/v1/good": b"HTTP/1.1 200 OK", "/v1/bad": b"HTTP/1.1 429 Too Many Requests"}
HEADS: list[str] = []


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
    kept = KeptSpans()
    with kept.call:
        await client.send("good")
        await client.send("bad")

    good, bad, call = kept.ended
    assert [head.partition("traceparent: ")[2].partition("\r")[0].split("-")[1:3] for head in HEADS] == [
        [f"{span.context.trace_id:032x}", f"{span.context.span_id:016x}"] for span in (good, bad)
    ]
    assert (good.name, good.kind, good.parent) == ("GET", SpanKind.CLIENT, call.context)
    assert attributes_of(good)["http.response.status_code"] == 200
    assert "error.type" not in attributes_of(good)
    assert attributes_of(bad)["http.response.status_code"] == 429
    assert attributes_of(bad)["error.type"] == "429"


async def test_without_a_trace_nothing_is_sent_of_one(client: HttpClient) -> None:
    await client.send("good")

    assert "traceparent" not in HEADS[0]
