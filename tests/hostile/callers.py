"""Sends drawn payloads to a server and gathers what it answers."""

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import grpc
from grpc import aio
from tests.hostile.payloads import Payload, draw

from gradewire_proto.v1 import references_pb2, scoring_pb2, types_pb2

_CALLS_AT_A_TIME: Final = 16
_TIMEOUT_S: Final = 60.0
_STREAMS: Final = ("ScoreStream", "ServerReflectionInfo")
_UNARY: Final = ("Score", "List", "Check", "Judge")
_REPLIES: Final[dict[str, Any]] = {
    "gradewire.v1.Scoring/Score": scoring_pb2.ScoreResponse,
    "gradewire.v1.Scoring/ScoreStream": scoring_pb2.ScoreStreamResponse,
    "gradewire.v1.References/Prepare": references_pb2.PrepareProgress,
}


@dataclass
class Answers:
    """What came of many payloads.

    Attributes:
        codes: Calls by gRPC code.
        methods: Calls by method.
        defects: Payloads, by number, that were answered INTERNAL or UNKNOWN, or with a result that is INTERNAL.
        leaks: Those whose answer holds one of the words that must not leave the server.
        most_details: Characters of the longest message of a failed call.
    """

    codes: Counter[str] = field(default_factory=Counter)
    methods: Counter[str] = field(default_factory=Counter)
    defects: list[tuple[int, str]] = field(default_factory=list)
    leaks: list[tuple[int, str]] = field(default_factory=list)
    most_details: int = 0


async def send_drawn(port: int, *, seed: int, count: int, secrets: Sequence[str]) -> Answers:
    """Sends `count` payloads of a seed, several at a time; `secrets` are words that must not stand in an answer."""
    rng = random.Random(seed)  # noqa: S311 - drawn again from the same seed
    numbered = enumerate(draw(rng) for _ in range(count))
    answers = Answers()
    forbidden = [word.encode() for word in (*secrets, "Traceback", 'File "')]
    options = [("grpc.enable_retries", 0), ("grpc.max_receive_message_length", 64 << 20)]

    async def caller() -> None:
        address = f"127.0.0.1:{port}"
        async with aio.insecure_channel(address, options=options) as channel:
            with grpc.insecure_channel(address, options=options) as blocking:
                await send_all(channel, blocking)

    async def send_all(channel: aio.Channel, blocking: grpc.Channel) -> None:
        for number, payload in numbered:
            streams = payload.method.endswith(_STREAMS)
            sending = asyncio.to_thread(_stream, blocking, payload) if streams else _send(channel, payload)
            code, replies, details = await sending
            answers.codes[code] += 1
            answers.methods[payload.method] += 1
            answers.most_details = max(answers.most_details, len(details))
            if code in {"INTERNAL", "UNKNOWN"} or _has_internal(payload.method, replies):
                answers.defects.append((number, f"{payload.method} {code} {details[:200]}"))
            for word in forbidden:
                if any(word in each for each in (*replies, details.encode())):
                    answers.leaks.append((number, word.decode()))

    await asyncio.gather(*(caller() for _ in range(_CALLS_AT_A_TIME)))
    return answers


async def _send(channel: aio.Channel, payload: Payload) -> tuple[str, list[bytes], str]:
    path, given = f"/{payload.method}", {"timeout": _TIMEOUT_S, "metadata": payload.metadata}
    replies: list[bytes] = []
    try:
        if payload.method.endswith(_UNARY):
            replies.append(await channel.unary_unary(path)(payload.messages[0], **given))
        else:
            call = channel.unary_stream(path)(payload.messages[0], **given)
            async for each in call:
                replies.append(each)
                if payload.method.endswith("Watch"):  # it would go on for good
                    call.cancel()
                    break
    except aio.AioRpcError as error:
        return error.code().name, replies, error.details() or ""
    return "OK", replies, ""


def _stream(channel: grpc.Channel, payload: Payload) -> tuple[str, list[bytes], str]:
    """A stream, on a thread: asyncio's client says INTERNAL where the server ended a call that it still wrote to."""
    replies: list[bytes] = []
    call = channel.stream_stream(f"/{payload.method}")
    try:
        replies.extend(call(iter(payload.messages), timeout=_TIMEOUT_S, metadata=payload.metadata))
    except grpc.RpcError as error:
        if not isinstance(error, grpc.Call):
            raise
        return error.code().name, replies, error.details() or ""
    return "OK", replies, ""


def _has_internal(method: str, replies: Sequence[bytes]) -> bool:
    if method not in _REPLIES:
        return False
    for data in replies:
        reply = _REPLIES[method].FromString(data)
        failures = getattr(reply, "failures", ())
        results = [result for item in getattr(reply, "items", ()) for result in item.results]
        if any(each.status == types_pb2.STATUS_INTERNAL for each in (*failures, *results)):
            return True
    return False
