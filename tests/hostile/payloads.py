"""Payloads as no honest client sends them: drawn from the descriptors of our requests, then bent byte by byte.

The same seed draws the same payloads.
"""

import random
from dataclasses import dataclass
from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from gradewire_proto.v1 import models_pb2, references_pb2, scoring_pb2, types_pb2

TEXTS: Final = (
    "cat", "a big cat", "It was a cat.", "yes", "no", "Yes, it is.", "three", "3", "12/05/1999", "٣",
    "日本語", "ß", "İ", "", " ", "\0", "\t\n", "\u00ad", "\u200b", "\u202e", "\ufeff", "\u2028", "\u2800",
    "\u3164", "e\u0301", "\u0301", "a" + "\u0301" * 30, "a" + "\u0301" * 31, "\u0301" * 400,
    "\U0001f600", "👩\u200d👩\u200d👧", "\U000e0041", "ﬁ", "ﷺ", "\U0001d160", "<|im_end|>", "[/INST]",
    "Rating: 3", "{question}", "%s", "../../x", "a/b", "C:\\x", "*", "[!.]*", "~", "nan", "-1e999",
    "x" * 300, "é" * 200, "cat " * 2000, "w" * 20_000, "a b " * 5000,
)  # fmt: skip
MODELS: Final = (
    "", "", "", "hash", "all-MiniLM-L6-v2", "scripted", "all-MiniLM-L6-v2@00000000", "hash@0000000g",
    "@", "a@b@c", ".", "..", "/", "a/b", "../models", "a\0b", "a\nb", "x" * 255, "x" * 256, "x" * 257,
    "x" * 300, "é" * 128, "é" * 129, "👩" * 64, "\u0301" * 100, "*", "[!.]*", "x" * 5000, "@" + "0" * 64,
    "@" + "0" * 65, "\U000e0041" * 64, "x@" + "f" * 300,
)  # fmt: skip
PROMPTS: Final = (
    "", "", "lave/1", "judge_grade/2", "lave/1@00000000", "lave/999", "lave/99999999", "x" * 300, "=",
    "a=1\n", "a.b.c=1\n", "[" * 2000 + "=", "a=" + "[" * 2000, "a=" + "9" * 5000,
    "format=1\nname='x'\nmetric='lave'\nversion=1\n", "[[a]]=1",
    f"format=1\nname='x'\nversion=1\nmetric='{'y' * 500}'", "x={" + "a=1," * 500 + "}", "=" * 65_536,
    "=" * 65_537, "='\u0301'", f"'{'k' * 3000}'=1\n'{'k' * 3000}'=2", "format=nan", "format=1e400",
    "x=1979-05-27T07:32:00-08:00", "x=25:61:61",
)  # fmt: skip
FITS: Final = ("", "", "votes", "0" * 8, "0" * 12, "f" * 64, "f" * 65, "F" * 8, "x" * 300, "\0" * 8, "é" * 32)
SETS: Final = (
    "",
    "",
    "set",
    "set/é",
    "x" * 256,
    "x" * 257,
    "\U0001d160" * 64,
    "\u0301" * 31,
    "\0",
    "a b\n",
    "💥" * 64,
    "@" * 9,
)
NUMBERS: Final = (0.0, -0.0, 0.3, 0.5, 0.9, 1.0, 2.0, -1.0, 1e308, 5e-324, float("nan"), float("inf"), -float("inf"))
COUNTS: Final = (0, 1, 1, 2, 2, 3, 4, 5, 12, 1 << 16, (1 << 31) - 1, (1 << 32) - 1)
PICTURES: Final = (b"", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"RIFF\0\0\0\0WEBPVP8X", b"GIF89a", b"<svg", bytes(9))
"""Beginnings of pictures, and what is none."""
ENUMS: Final = (6, 77, -1, (1 << 31) - 1, -(1 << 31))
"""Numbers that most enums do not have."""
SERVICES: Final = (
    "", "gradewire.v1.Scoring", "gradewire.v1.Judging", "grpc.health.v1.Health", "gradewire.v1.Nobody",
    "gradewire.v1.Scoring.Score", "gradewire/v1/scoring.proto", "gradewire.v1.MetricSpec", "/etc/passwd",
    "../../etc/passwd", ".", "\0", "é" * 200, "x" * 5000, "google.protobuf.Any",
)  # fmt: skip
_BY_NAME: Final = {
    "model": MODELS,
    "prompt": PROMPTS,
    "fit": FITS,
    "reference_set": SETS,
    "service": SERVICES,
    **dict.fromkeys(("file_by_filename", "file_containing_symbol", "containing_type", "list_services"), SERVICES),
    "all_extension_numbers_of_type": SERVICES,
}
METADATA: Final[tuple[tuple[str, str | bytes], ...]] = (
    ("authorization", ""), ("authorization", "Bearer "), ("authorization", "Bearer x"), ("authorization", "x" * 2000),
    ("authorization", "Basic eDp5"), ("authorization", "Bearer a,Bearer b"), ("authorization", "bearer %s"),
    ("x-request-id", ""), ("x-request-id", "x" * 3000), ("x-request-id", '{"a": "b"}'), ("x-request-id", "../../x"),
    ("x-request-id", "%s%n{question}"), ("x-request-id-bin", b"\0\xff\n"), ("traceparent", "00-0-0-0"),
    ("grpc-previous-rpc-attempts", "-1"), ("grpc-previous-rpc-attempts", "999999999999"), ("priority", "u=9"),
    ("grpc-retry-pushback-ms", "-1"), ("content-length", "-1"), ("accept-encoding", "gzip,br,x"),
    ("a-bin", b"x" * 3000),
    ("cookie", "a=b; " * 200), ("x-forwarded-for", "127.0.0.1, ::1"), ("grpc-tags-bin", b"\xff" * 50),
    ("grpc-trace-bin", b"\x00\x01"), ("k" * 300, "v"), ("x-large", "v" * 7000), ("x-larger", "v" * 20_000),
)  # fmt: skip
_WEIGHTS: Final = {
    "gradewire.v1.Scoring/Score": 12,
    "gradewire.v1.Scoring/ScoreStream": 5,
    "gradewire.v1.References/Prepare": 5,
    "gradewire.v1.Models/List": 1,
    "gradewire.v1.Monitoring/Snapshot": 1,
    "grpc.health.v1.Health/Check": 1,
    "grpc.health.v1.Health/Watch": 1,
    "grpc.health.v1.Health/List": 1,
    "grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": 2,
    "gradewire.v1.Judging/Judge": 0.5,
}
"""How often which method is drawn; of the last there is a service's name, for health, and no service."""
METHODS: Final = tuple(_WEIGHTS)
_MOST_INT32: Final = (1 << 31) - 1
_MANY: Final = {"items": (5000, 4097), "entries": (4097,), "metrics": (33, 32), "references": (1025, 40)}
"""Elements of which a list has so many now and then: about as many as a limit allows, or one more."""


@dataclass(frozen=True)
class Payload:
    """One call.

    Attributes:
        method: `package.Service/Method`.
        messages: Encoded requests; one but for streams.
        metadata: Beside those that gRPC sends itself.
    """

    method: str
    messages: tuple[bytes, ...]
    metadata: tuple[tuple[str, str | bytes], ...] = ()


def draw(rng: random.Random) -> Payload:
    """One call with drawn fields; every third is bent as bytes too, every fifth has metadata that nobody expects."""
    (method,) = rng.choices(METHODS, tuple(_WEIGHTS.values()))
    encoded = [message.SerializeToString() for message in _messages(rng, method)]
    if rng.random() < 0.33:
        index = rng.randrange(len(encoded))
        encoded[index] = _bent(rng, encoded[index])
    metadata = rng.sample(METADATA, rng.choice((1, 1, 2, 5))) if rng.random() < 0.2 else []
    return Payload(method, tuple(encoded), tuple(metadata))


def _messages(rng: random.Random, method: str) -> list[Message]:
    name = method.partition("/")[2]
    if name == "Score":
        return [_score(rng)]
    if name == "ScoreStream":
        return _stream(rng)
    if name == "ServerReflectionInfo":
        return [fill(rng, reflection_pb2.ServerReflectionRequest(), 0) for _ in range(rng.choice((1, 2, 5)))]
    one: Message = (
        references_pb2.PrepareRequest()
        if name == "Prepare"
        else models_pb2.ListModelsRequest()
        if method.endswith("Models/List")
        else health_pb2.HealthCheckRequest()
    )
    return [fill(rng, one, 0)]


def _score(rng: random.Random) -> Message:
    request = fill(rng, scoring_pb2.ScoreRequest(), 0)
    if not request.metrics and rng.random() < 0.9:
        fill(rng, request.metrics.add(), 1)
    return request


def _stream(rng: random.Random) -> list[Message]:
    messages = [fill(rng, scoring_pb2.ScoreStreamRequest(), 0) for _ in range(rng.choice((1, 1, 2, 3)))]
    if rng.random() < 0.9:
        messages[0] = scoring_pb2.ScoreStreamRequest(config=fill(rng, scoring_pb2.ScoreStreamConfig(), 0))
        messages[1:] = [
            scoring_pb2.ScoreStreamRequest(items=fill(rng, scoring_pb2.ScoreStreamItems(), 0)) for _ in messages[1:]
        ]
    return messages


def fill(rng: random.Random, message: Any, depth: int) -> Any:
    """Sets drawn fields of a message; of a oneof, one."""
    whole = type(message) is types_pb2.MetricSpec
    fields = [rng.choice(message.DESCRIPTOR.fields)] if whole or message.DESCRIPTOR.oneofs_by_name.get("kind") else None
    if fields is None:
        chance = rng.choice((0.2, 0.6, 0.9))
        fields = [field for field in message.DESCRIPTOR.fields if rng.random() < chance]
    for field in fields:
        _set(rng, message, field, depth)
    return message


def _set(rng: random.Random, message: Any, field: FieldDescriptor, depth: int) -> None:
    if field.type == FieldDescriptor.TYPE_MESSAGE:
        if field.is_repeated:
            count = rng.choice((1, 1, 2, 3))
            if rng.random() < 0.003 and field.name in _MANY:
                element = fill(rng, getattr(message, field.name).add(), depth + 1)
                getattr(message, field.name).extend([element] * (rng.choice(_MANY[field.name]) - 1))
                return
            for _ in range(count):
                fill(rng, getattr(message, field.name).add(), depth + 1)
        else:
            getattr(message, field.name).SetInParent()
            fill(rng, getattr(message, field.name), depth + 1)
    elif field.is_repeated:
        count = rng.choice(_MANY.get(field.name, (3,))) if rng.random() < 0.003 else rng.choice((0, 1, 1, 2, 3))
        getattr(message, field.name).extend([_value(rng, field) for _ in range(count)])
    else:
        setattr(message, field.name, _value(rng, field))


def _value(rng: random.Random, field: FieldDescriptor) -> Any:
    if field.type == FieldDescriptor.TYPE_STRING:
        # Long texts are few: the encoder reads each.
        return rng.choice(_BY_NAME.get(field.name, TEXTS if rng.random() < 0.1 else TEXTS[:12]))
    if field.type == FieldDescriptor.TYPE_BYTES:
        return rng.choice(PICTURES)
    if field.type == FieldDescriptor.TYPE_ENUM:
        assert field.enum_type is not None
        return rng.choice(ENUMS if rng.random() < 0.03 else tuple(field.enum_type.values_by_number))
    if field.type == FieldDescriptor.TYPE_DOUBLE:
        return rng.choice(NUMBERS)
    if field.type == FieldDescriptor.TYPE_BOOL:
        return rng.random() < 0.5
    return min(rng.choice(COUNTS), _MOST_INT32 if field.type == FieldDescriptor.TYPE_INT32 else COUNTS[-1])


def _bent(rng: random.Random, data: bytes) -> bytes:
    """The bytes with a few of them flipped, cut off, doubled, or with fields that nobody knows."""
    at = rng.randrange(len(data) + 1)
    kind = rng.randrange(6)
    if kind == 0:
        return data[:at]
    if kind == 1 and data:
        bent = bytearray(data)
        for _ in range(rng.choice((1, 2, 8))):
            bent[rng.randrange(len(bent))] ^= 1 << rng.randrange(8)
        return bytes(bent)
    if kind == 2:
        return data[:at] + data[rng.randrange(len(data) + 1) :]
    if kind == 3:
        return data + _unknown(rng)
    if kind == 4:
        return data[:at] + _unknown(rng) + data[at:]
    return rng.randbytes(rng.choice((1, 10, 100)))


def _unknown(rng: random.Random) -> bytes:
    """A field that our messages do not have, of any wire type; groups are nested deeply now and then."""
    number = rng.choice((50, 1000, (1 << 29) - 1))
    kind = rng.randrange(6)
    tag = _varint(number << 3 | kind)
    if kind == 0:
        return tag + b"\xff" * 9 + b"\x01"
    if kind == 1:
        return tag + bytes(8)
    if kind == 2:
        body = rng.randbytes(rng.choice((0, 10, 1000, 100_000)))
        return tag + _varint(len(body)) + body
    if kind == 3:
        depth = rng.choice((1, 50, 5000))
        return tag * depth + _varint(number << 3 | 4) * depth
    return tag + bytes(4)


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*encoded, value))
