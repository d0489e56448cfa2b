"""All attacks on an HTTP gateway at once, by one process: `python -m tests.hostile.gateway_attacks PORT TOKEN [NAME…]`.

It runs at the lowest priority and asks at bounded rates: what is measured beside it is what the gateway does with it,
and not what its own computing takes from the gateway. Most of it comes from other hosts than the callers who are
measured, the rest has no token, or one that is made up.
"""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, TypeAlias

from tests.support.hostile_texts import JSON
from tests.support.servers.gateway import SCORE, SCORE_STREAM, RawConnection

from gradewire_gateway.rewards import AGGREGATE_PATH, OPENRLHF_PATH

_HOST: Final = "127.0.0.1"
_OTHERS: Final = tuple(f"127.0.0.{number}" for number in range(2, 7))
_MANY: Final = 128
_HALF_HEADS: Final = 1000
_AGAIN_S: Final = 5.0
_UNREAD_EVERY_S: Final = 2.5
"""The server computes such a reply, and the gateway writes it, in a second of a core."""
_ITEM: Final = {"references": ["a"], "prediction": "a"}
_METRICS: Final = [{"exactMatch": {}}] * 32
_MIB: Final = 1 << 20

BLANKS: Final = json.dumps({"query": ["p" + " " * 53_000 + "x>"], "prompts": ["p"], "labels": ["x"]}).encode()
TWICE: Final = JSON["names of which the last is there twice"](58_000).encode()
MANY_TWICE: Final = JSON["names of which the last is there twice"](2 * _MIB).encode()
RESPONSES: Final = json.dumps(
    {"verify_responses": [{"reward": n % 2, "_ng_task_index": n // 2} for n in range(13 * _MIB // 36)]}
).encode()
FEWER_RESPONSES: Final = json.dumps({"verify_responses": [{"reward": n % 2} for n in range(60_000)]}).encode()
HUGE: Final = json.dumps({"items": [_ITEM] * 1000, "metrics": _METRICS}).encode()
"""A body of 40 kB, with a reply of 4 MB."""
HUGE_LINES: Final = b"\n".join(
    json.dumps(line).encode() for line in ({"config": {"metrics": _METRICS}}, {"items": {"items": [_ITEM] * 1000}})
)
LARGE: Final = json.dumps(
    {"items": [{"references": ["a"], "prediction": "a" * 7_000}] * 1900, "metrics": _METRICS[:1]}
).encode()
"""A body of 13 MB."""
WIDE: Final = json.dumps(
    {"items": [{"references": ["a"], "prediction": "\U0001f600" + "a" * 14_000_000}], "metrics": _METRICS[:1]},
    ensure_ascii=False,
).encode()
"""A body of 14 MB. Python stores its text in 4 bytes per character."""
SOME: Final = json.dumps({"items": [_ITEM] * 4000, "metrics": []}).encode()
"""A body of 160 kB, which the gateway's process for large JSON reads."""


@asynccontextmanager
async def _connected(port: int, host: str) -> AsyncIterator[RawConnection]:
    connection = await RawConnection.open(port, host)
    try:
        yield connection
    finally:
        await connection.close()


async def _post(port: int, host: str, path: str, body: bytes, *headers: str, every_s: float) -> None:
    """Posts again and again, whatever is answered."""
    while True:
        with suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
            async with _connected(port, host) as connection:
                await connection.post(path, body, *headers)
                await connection.status()
        await asyncio.sleep(every_s)


async def _hold(
    port: int, host: str, begin: Callable[[RawConnection], Awaitable[None]], *, after_s: float = 0.0
) -> None:
    """Begins something on a connection and waits until it is closed, again and again."""
    await asyncio.sleep(after_s)
    while True:
        with suppress(OSError, TimeoutError):
            async with _connected(port, host) as connection:
                await begin(connection)
                await asyncio.wait_for(connection.ended(), 60)
        await asyncio.sleep(_AGAIN_S)


def _unread(path: str, body: bytes, *headers: str) -> Callable[[RawConnection], Awaitable[None]]:
    async def begin(connection: RawConnection) -> None:
        await connection.post(path, body, *headers)
        await connection.begun()
        await asyncio.sleep(20)

    return begin


async def _half_a_later_head(connection: RawConnection) -> None:
    await connection.send(b"GET /nope HTTP/1.1\r\nhost: localhost\r\n\r\nGET /nope HTTP/1.1\r\n")


def _half_body(*headers: str) -> Callable[[RawConnection], Awaitable[None]]:
    return lambda connection: connection.post(SCORE, b"{", *headers, length=2)


Attack: TypeAlias = Callable[[int, str], Iterable[Coroutine[Any, Any, None]]]
_FIRST, _SECOND, _THIRD, _FOURTH, _FIFTH = _OTHERS


def _half_bodies(port: int, _known: str) -> Iterable[Coroutine[Any, Any, None]]:
    for number in range(_MANY):
        yield _hold(port, _FIFTH, _half_body())
        yield _hold(port, _HOST, _half_body())
        yield _hold(port, _HOST, _half_body(f"authorization: Bearer made-up-{number}"))


ATTACKS: Final[Mapping[str, Attack]] = {
    "blanks before no end": lambda port, _: (
        _post(port, host, OPENRLHF_PATH, BLANKS, every_s=1) for host in (_HOST, *_OTHERS)
    ),
    "names that are there twice": lambda port, _: (
        *(_post(port, host, SCORE, TWICE, every_s=1) for host in (_HOST, *_OTHERS)),
        _post(port, _FIRST, SCORE, MANY_TWICE, every_s=2),
    ),
    "rewards to average": lambda port, _: (
        _post(port, _SECOND, AGGREGATE_PATH, RESPONSES, every_s=5),
        _post(port, _THIRD, AGGREGATE_PATH, FEWER_RESPONSES, every_s=2),
    ),
    "half heads": lambda port, _: (
        _hold(port, _FOURTH, _half_a_later_head, after_s=number / 300) for number in range(_HALF_HEADS)
    ),
    "half bodies": _half_bodies,
    "unread streams": lambda port, known: (
        _hold(port, _FIRST, _unread(SCORE_STREAM, HUGE_LINES, known), after_s=number * _UNREAD_EVERY_S)
        for number in range(_MANY // 2)
    ),
    "unread replies": lambda port, known: (
        _hold(port, _SECOND, _unread(SCORE, HUGE, known), after_s=number * _UNREAD_EVERY_S)
        for number in range(_MANY // 2)
    ),
    "large requests": lambda port, known: (
        _post(port, _FOURTH, SCORE, LARGE, known, every_s=5),
        _post(port, _THIRD, SCORE, WIDE, every_s=5),
        *(_post(port, host, SCORE, SOME, every_s=1) for host in (_HOST, *_OTHERS)),
    ),
}


async def attack(port: int, token: str, names: Iterable[str]) -> None:
    """Attacks until it is cancelled; `token` is one that the server accepts."""
    known = f"authorization: Bearer {token}"
    await asyncio.gather(*(each for name in names for each in ATTACKS[name](port, known)))


if __name__ == "__main__":
    os.nice(19)
    asyncio.run(attack(int(sys.argv[1]), sys.argv[2], sys.argv[3:] or ATTACKS))
