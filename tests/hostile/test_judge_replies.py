"""A judge's server that replies without end holds up its own judge alone, and each item says what is wrong."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

import pytest
from tests.server.judges.remote.remote_judges import choose, opened
from tests.support.event_loop import taking_turns
from tests.support.figures import TakeFigure

from gradewire_server.domain.items import Failure, Status

_AT_ONCE: Final = 16
"""Requests that a judge has in flight, unless it is set otherwise."""
_TIMEOUT_S: Final = 1.5
_TRIES: Final = 3
_MODELS: Final = b'HTTP/1.1 200 OK\r\ncontent-length: 27\r\n\r\n{"data":[{"id":"m"}]}      '
_HEAD: Final = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
_CHUNKED: Final = _HEAD + b"transfer-encoding: chunked\r\n\r\n"
_LATE: Final = "did not answer within 1.5 s (judge_timeout_s)"
_BROKEN: Final = "cannot be reached"
_LARGE: Final = "more than 1 MiB"

REPLIES: Final = {
    "103 Early Hints": (b"", b"HTTP/1.1 103 Early Hints\r\n\r\n", _BROKEN),
    "100 Continue": (b"", b"HTTP/1.1 100\r\n\r\n", _BROKEN),
    "early hints of many headers": (b"", b"HTTP/1.1 103 Early Hints\r\n" + b"a:\r\n" * 9000 + b"\r\n", _BROKEN),
    "headers": (_HEAD, b"a: b\r\n", _BROKEN),
    "one header": (_HEAD + b"a: ", b"b", _BROKEN),
    "chunks of one byte": (_CHUNKED, b"1\r\n \r\n", _LARGE),
    "an extension of a chunk": (_CHUNKED + b"1;", b"x", _LARGE),
    "chunks with extensions": (_CHUNKED, b"1;" + b"x" * 90_000 + b"\r\n \r\n", _LARGE),
    "trailing headers": (_CHUNKED + b"0\r\n", b"a: b\r\n", _BROKEN),
    "a body": (_HEAD + b"content-length: 9999999999\r\n\r\n", b" ", _LARGE),
    "one byte now and then": (_HEAD + b"content-length: 99\r\n\r\n", b"", _LATE),
}
"""By what goes on without end: the begin of a reply, what follows again and again, and words of the failure."""


@contextmanager
def _judge_server(begin: bytes, part: bytes) -> Iterator[str]:
    """Gives the address of a server whose replies never end; it sends from threads, which hold the GIL for no time."""
    flood = part * ((256 << 10) // len(part) + 1) if part else b" "

    def serve(connection: socket.socket) -> None:
        with suppress(OSError), connection:
            while connection.recv(1 << 16).startswith(b"GET"):
                connection.sendall(_MODELS)
            connection.sendall(begin)
            while True:
                connection.sendall(flood)
                if not part:
                    time.sleep(0.1)

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(listening.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
        listening.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize(("begin", "part", "words"), REPLIES.values(), ids=REPLIES)
async def test_a_reply_without_end_keeps_nobody_waiting(
    begin: bytes, part: bytes, words: str, figure: TakeFigure, request: pytest.FixtureRequest
) -> None:
    shares = []
    with _judge_server(begin, part) as url:
        for _ in range(_TRIES):
            async with (
                opened(url, attempts=1, timeout_s=_TIMEOUT_S, max_in_flight=_AT_ONCE) as judge,
                taking_turns() as turns,
            ):
                asked = [judge.choose(choose(f"answer {number}"), deadline_s=None) for number in range(_AT_ONCE)]
                answers = [reply.answer for reply in await asyncio.gather(*asked)]
            assert all(isinstance(answer, Failure) for answer in answers)
            failures = [answer for answer in answers if isinstance(answer, Failure)]
            assert {each.status for each in failures} <= {Status.UNAVAILABLE, Status.UNPARSABLE}
            assert words in failures[0].message
            shares.append(turns.latest_s / _TIMEOUT_S)
            name = f"{_AT_ONCE} replies of a judge without end, {request.node.callspec.id}"
            figure(f"{name}: the event loop was late by at most", round(turns.latest_s * 1e3), "ms", bound="<= 50")
            if shares[-1] < 1 / 4:
                break
    assert min(shares) < 1 / 4, "a thread gives way every 5 ms; on the loop a turn takes most of the time"
