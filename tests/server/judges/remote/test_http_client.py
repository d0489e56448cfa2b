"""Requests to a judge's server, over sockets: what is kept open, what is refused, and which protocol is spoken."""

import asyncio
import gzip
import ssl
import subprocess
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import h2.config
import h2.connection
import h2.events
import pytest

from gradewire_server.domain.items import Status
from gradewire_server.judges.connections.http1 import Http1Connections
from gradewire_server.judges.connections.http_library import LibraryConnections
from gradewire_server.judges.remote.errors import RemoteError
from gradewire_server.judges.remote.http_client import HttpClient
from gradewire_server.settings.judge import RemoteJudgeConfig

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
OK = b"HTTP/1.1 200 OK\r\n"


@asynccontextmanager
async def serving(serve: Serve, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """Yield the server's host and port."""
    writers: list[asyncio.StreamWriter] = []

    async def kept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        try:
            await serve(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(kept, "127.0.0.1", 0, ssl=tls)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for writer in writers:
            writer.transport.abort()
        await asyncio.sleep(0)


@asynccontextmanager
async def client_of(url: str, **settings: object) -> AsyncIterator[HttpClient]:
    client = HttpClient(RemoteJudgeConfig(url, "m", token="key", **settings))  # type: ignore[arg-type] # noqa: S106 - no secret
    try:
        yield client
    finally:
        await client.close()


def answering(*answers: bytes) -> tuple[Serve, list[bytes]]:
    """Serve these answers to the next requests of any connection, the last one always; also return the heads."""
    heads: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]
            await reader.readexactly(int(length or 0))
            heads.append(head)
            answer = answers[min(len(heads), len(answers)) - 1]
            writer.write(answer)
            await writer.drain()
            if b"connection: close" in answer or b"content-length" not in answer.split(b"\r\n\r\n")[0]:
                return

    return serve, heads


async def said(answer: bytes) -> tuple[int, bytes]:
    async with serving(answering(answer)[0]) as place, client_of(f"http://{place}/v1") as client:
        reply = await client.send("chat/completions", b"{}")
    return reply.status, reply.content


HINT = b"HTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\n"
CHUNKED = OK + b"transfer-encoding: chunked\r\nconnection: close\r\n\r\n"
PACKED = gzip.compress(b"{}", mtime=0)


@pytest.mark.parametrize(
    ("answer", "content"),
    [
        (OK + b"content-length: 2\r\n\r\n{}", b"{}"),
        (CHUNKED + b"1\r\n{\r\n1;a=b\r\n}\r\n0\r\nx: y\r\n\r\n", b"{}"),
        (OK + b"connection: close\r\n\r\n{}", b"{}"),
        (b"HTTP/1.0 200 OK\r\n\r\n{}", b"{}"),
        (b"HTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\n" + OK + b"content-length: 2\r\n\r\n{}", b"{}"),
        (OK + b"content-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(PACKED) + PACKED, b"{}"),
        (OK + b"set-cookie: a=b\r\ncontent-length: 2\r\nx-long: " + b"y" * 30_000 + b"\r\n\r\n{}", b"{}"),
    ],
)
async def test_a_body_comes_whole_in_every_form(answer: bytes, content: bytes) -> None:
    assert await said(answer) == (200, content)


@pytest.mark.parametrize(
    "answer",
    [
        CHUNKED + b"5\r\n{}",
        OK + b"content-length: 99\r\nconnection: close\r\n\r\n{}",
        OK + b"content-length: 2\r\ncontent-length: 3\r\n\r\n{}",
        b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: close\r\n\r\n",
        OK + b"x: " + b"y" * 200_000 + b"\r\n\r\n",
        b"SSH-2.0-x\r\n\r\n",
    ],
)
async def test_what_is_no_whole_reply_may_be_tried_again(answer: bytes) -> None:
    try:
        status, _ = await said(answer)
    except RemoteError as error:
        assert error.failure.status is Status.UNAVAILABLE  # noqa: PT017 - a reply is fine only for 101
    else:
        assert status == 101


async def test_a_few_interim_replies_are_read_and_not_many() -> None:
    good = OK + b"content-length: 2\r\n\r\n{}"
    assert await said(HINT * 16 + good) == (200, b"{}")
    with pytest.raises(RemoteError):
        await said(HINT * 17 + good)


async def test_a_connection_is_kept_and_brings_neither_cookies_nor_the_key_to_others() -> None:
    serve, heads = answering(
        OK + b"set-cookie: a=b\r\ncontent-length: 2\r\n\r\n{}",
        b"HTTP/1.1 302 X\r\nlocation: http://127.0.0.1:9/\r\ncontent-length: 0\r\n\r\n",
    )
    opened = 0

    async def counted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal opened
        opened += 1
        await serve(reader, writer)

    async with serving(counted) as place, client_of(f"http://{place}/v1") as client:
        statuses = [(await client.send("chat/completions", b"{}")).status for _ in range(3)]
    assert statuses == [200, 302, 302]
    assert opened == 1
    assert [b"authorization: bearer key" in head.lower() for head in heads] == [True] * 3
    assert not any(b"cookie" in head.lower() for head in heads)
    assert b"accept-encoding: identity" in heads[0].lower()


async def test_no_more_connections_are_open_than_requests_may_be_in_flight() -> None:
    most, flying = 0, 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal most, flying
        flying += 1
        most = max(most, flying)
        await reader.readuntil(b"\r\n\r\n")
        await asyncio.sleep(0.02)
        flying -= 1
        writer.write(OK + b"connection: close\r\ncontent-length: 2\r\n\r\n{}")
        await writer.drain()

    async with serving(serve) as place, client_of(f"http://{place}/v1", max_in_flight=2) as client:
        await asyncio.gather(*(client.send("models") for _ in range(12)))
    assert most <= 3  # one is for the probe


@pytest.mark.parametrize("head", [CHUNKED, OK + b"connection: close\r\n\r\n", OK], ids=["chunks", "body", "headers"])
async def test_an_endless_reply_holds_up_nobody(head: bytes) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(head)
        while True:
            writer.write(b"1\r\n \r\n" * 10_000 if b"chunked" in head else b"a: b\r\n" * 10_000)
            await writer.drain()

    longest_s = 0.0

    async def watch() -> None:
        nonlocal longest_s
        while True:
            before_s = time.monotonic()
            await asyncio.sleep(0)
            longest_s = max(longest_s, time.monotonic() - before_s)

    async with serving(serve) as place, client_of(f"http://{place}/v1") as client:
        watching = asyncio.create_task(watch())
        with pytest.raises(RemoteError) as caught:
            async with asyncio.timeout(30):
                await client.send("chat/completions", b"{}")
        watching.cancel()
    assert caught.value.failure.status in {Status.UNPARSABLE, Status.UNAVAILABLE}
    assert longest_s < 5


async def test_the_proxy_of_the_environment_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    serve, heads = answering(OK + b"content-length: 2\r\n\r\n{}")
    async with serving(serve) as place:
        monkeypatch.setenv("HTTP_PROXY", f"http://{place}")
        monkeypatch.setenv("http_proxy", f"http://{place}")
        async with client_of("http://judge.invalid/v1") as client:
            assert (await client.send("models")).status == 200
        monkeypatch.setenv("no_proxy", "judge.invalid")
        monkeypatch.setenv("NO_PROXY", "judge.invalid")
        async with client_of("http://judge.invalid/v1") as client:
            with pytest.raises(RemoteError):
                await client.send("models")
    assert [head.split(b"\r\n")[0] for head in heads] == [b"GET http://judge.invalid/v1/models HTTP/1.1"]


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "ALL_PROXY"])
async def test_a_proxy_needs_no_scheme(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    serve, heads = answering(OK + b"content-length: 2\r\n\r\n{}")
    async with serving(serve) as place:
        monkeypatch.setenv(variable, place)
        monkeypatch.setenv(variable.lower(), place)
        async with client_of("http://judge.invalid/v1") as client:
            assert (await client.send("models")).status == 200
    assert len(heads) == 1


@pytest.mark.parametrize("named", ["foo://u:secret@x", "socks5://127.0.0.1:9", "http://u:secret@x:port"])
@pytest.mark.parametrize("variable", ["HTTP_PROXY", "ALL_PROXY"])
async def test_a_proxy_that_cannot_be_used_is_reported_with_its_variable(
    monkeypatch: pytest.MonkeyPatch, variable: str, named: str
) -> None:
    monkeypatch.setenv(variable, named)
    monkeypatch.setenv(variable.lower(), named)
    async with client_of("http://judge.invalid/v1") as client:
        with pytest.raises(RemoteError) as caught:
            await client.send("models")
    failure = caught.value.failure
    assert failure.status is Status.MODEL_UNAVAILABLE
    assert variable in failure.message
    assert "secret" not in failure.message


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("tls")
    cert, key = folder / "cert.pem", folder / "key.pem"
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    names = ["-subj", "/CN=judge", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*made, *names, "-keyout", str(key), "-out", str(cert)], check=True, capture_output=True)
    return cert, key


def tls_of(certificate: tuple[Path, Path], *protocols: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    if protocols:
        context.set_alpn_protocols(protocols)
    return context


async def serve_http2(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer each request with its path."""
    connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
    connection.initiate_connection()
    writer.write(connection.data_to_send())
    while data := await reader.read(1 << 16):
        for event in connection.receive_data(data):
            if isinstance(event, h2.events.RequestReceived):
                path = dict(event.headers)[b":path"]
                connection.send_headers(event.stream_id, [(":status", "200"), ("retry-after", "7")])
                connection.send_data(event.stream_id, path, end_stream=True)
        writer.write(connection.data_to_send())
        await writer.drain()


async def test_a_server_that_offers_http_2_is_asked_over_one_connection(
    certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    opened = 0

    async def counted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal opened
        opened += 1
        await serve_http2(reader, writer)

    tls = tls_of(certificate, "h2", "http/1.1")
    async with serving(counted, tls) as place, client_of(f"https://{place}/v1") as client:
        first = await client.send("models")
        replies = await asyncio.gather(*(client.send("chat/completions", b"{}") for _ in range(20)))
        assert isinstance(client._connections, LibraryConnections)
    assert (first.status, first.content, first.retry_after) == (200, b"/v1/models", "7")
    assert {reply.content for reply in replies} == {b"/v1/chat/completions"}
    assert opened == 2  # the first one found out the protocol


async def test_a_server_with_tls_but_without_http_2_is_asked_in_http_1(
    certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    serve, heads = answering(OK + b"content-length: 2\r\n\r\n{}")
    for protocols in ((), ("http/1.1",)):
        async with serving(serve, tls_of(certificate, *protocols)) as place, client_of(f"https://{place}/v1") as client:
            assert (await client.send("chat/completions", b"{}")).content == b"{}"
            assert isinstance(client._connections, Http1Connections)
    assert len(heads) == 2


@pytest.mark.parametrize("protocols", [("h2",), ("http/1.1",)])
async def test_a_certificate_that_nobody_signed_gets_no_key(
    certificate: tuple[Path, Path], protocols: tuple[str, ...]
) -> None:
    serve, heads = answering(OK + b"content-length: 2\r\n\r\n{}")
    async with serving(serve, tls_of(certificate, *protocols)) as place, client_of(f"https://{place}/v1") as client:
        with pytest.raises(RemoteError) as caught:
            await client.send("models")
    assert caught.value.failure.status is Status.UNAVAILABLE
    assert "certificate is not trusted (self-signed certificate; SSL_CERT_FILE" in caught.value.failure.message
    assert heads == []


async def test_a_certificate_for_another_host_and_a_server_without_tls_are_reported_as_such(
    certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    said = []
    async with serving(serve, tls_of(certificate)) as place, serving(serve) as plain:
        other = place.replace("127.0.0.1", "localhost")
        for address in (f"https://{other}/v1", f"https://{plain}/v1"):
            async with client_of(address) as client:
                with pytest.raises(RemoteError) as caught:
                    await client.send("models")
            said.append(caught.value.failure.message)
    assert "Hostname mismatch" in said[0]
    assert "TLS has failed" in said[1]


async def test_a_server_that_was_away_at_first_is_asked_over_http_2_when_it_is_back(
    certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    away = True

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not away:
            await serve_http2(reader, writer)

    tls = tls_of(certificate, "h2", "http/1.1")
    refusing = tls_of(certificate)
    refusing.minimum_version = refusing.maximum_version = ssl.TLSVersion.TLSv1_2
    refusing.set_ciphers("AES128-SHA")
    async with serving(serve, refusing) as place:
        port = int(place.rpartition(":")[2])
        client = HttpClient(RemoteJudgeConfig(f"https://{place}/v1", "m"))
        with pytest.raises(RemoteError):
            await client.send("models")
    away = False
    server = await asyncio.start_server(serve, "127.0.0.1", port, ssl=tls)
    try:
        assert (await client.send("models")).content == b"/v1/models"
        assert isinstance(client._connections, LibraryConnections)
    finally:
        await client.close()
        server.close()


async def test_closing_ends_the_thread_and_closing_twice_is_allowed() -> None:
    connections = LibraryConnections({}, 1, None)
    for _ in range(2):
        async with asyncio.timeout(30):
            await connections.close()
        assert not connections._thread.is_alive()
    async with client_of("http://127.0.0.1:9/v1") as client:
        with pytest.raises(RemoteError):
            await client.send("models")
        await client.close()


async def test_a_thread_that_a_reply_keeps_busy_does_not_keep_the_server_from_closing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gradewire_server.judges.connections.http_library._CLOSE_S", 0.1)
    connections = LibraryConnections({}, 1, None)
    ended = threading.Event()
    connections._loop.call_soon_threadsafe(ended.wait)
    try:
        async with asyncio.timeout(30):
            await connections.close()
        assert connections._thread.is_alive()
    finally:
        ended.set()
    async with asyncio.timeout(30):
        await asyncio.to_thread(connections._thread.join)
