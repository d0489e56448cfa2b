"""Check a message's size before parsing, and parse large messages in slices."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, Message

from gradewire_server.loop_turns import give_way
from gradewire_server.requests.errors import InvalidRequestError
from gradewire_server.settings.limits import Limits

_MAX_OTHER_FIELDS: Final = 1024
_VARINT: Final = 0
_FIXED_64: Final = 1
_BYTES: Final = 2
_FIXED_32: Final = 5
_MAX_VARINT_BYTES: Final = 10

_LIMIT_OF: Final[Mapping[str, str]] = MappingProxyType(
    {
        "items": "max_items_per_request",
        "pairs": "max_items_per_request",
        "entries": "max_items_per_request",
        "metrics": "max_metrics_per_request",
    }
)

_PER_BYTE: Final = 6
"""The estimated memory per message byte, for all copies and derived texts."""
_PER_STRING: Final = 120
"""The estimated memory in bytes for each string or image in a list, without its content."""
_PER_ITEM: Final = 1500
_PER_RESULT: Final = 1200
"""The estimated memory per result in bytes."""
_MAX_STRINGS: Final = 500_000
"""The maximum number of strings in a message's lists."""
_SMALL_BYTES: Final = 4096
_SLICE_BYTES: Final = 1 << 20
_LIST_TAGS: Final = (0x12, 0x1A, 0x2A, 0x42, 0x4A, 0x52, 0x00)
"""The tags of string and image lists, and the last byte of a needlessly long tag."""
_STRINGS_AT_ONCE: Final = 16_384

_BYTES_AT_ONCE: Final = 512 * 1024
"""The maximum size of a slice, which takes up to 5 ms to parse. A larger string is parsed whole."""
_FIELDS_AT_ONCE: Final = 4096
"""The maximum number of fields to read before other tasks get a turn."""

M = TypeVar("M", bound=Message)


class MalformedError(DecodeError):
    """Bytes that are not a protobuf message."""


class CountedList(NamedTuple):
    """A list of items, entries or metrics in a message. `limit` is a field name in `Limits`."""

    path: str
    limit: str


@dataclass(frozen=True, slots=True)
class CountedFields:
    """A message's counted fields by field number: lists, and nested messages that contain such lists."""

    lists: Mapping[int, CountedList] = field(default_factory=dict)
    inner: Mapping[int, "CountedFields"] = field(default_factory=dict)


@dataclass(slots=True)
class Counts:
    """The numbers of items (or pairs or entries) and metrics in a message."""

    items: int = 0
    metrics: int = 0

    def memory_bytes(self, size_bytes: int, strings: int) -> int:
        """Return a generous estimate of the memory for a message and its reply."""
        results = self.items * (_PER_ITEM + _PER_RESULT * max(1, self.metrics))
        return _PER_BYTE * size_bytes + _PER_STRING * strings + results


@cache
def counted_in(descriptor: Descriptor) -> CountedFields:
    """Return a message type's lists of items, entries and metrics, including those in nested messages."""
    lists, inner = {}, {}
    for each in descriptor.fields:
        if each.type != FieldDescriptor.TYPE_MESSAGE:
            continue
        if each.is_repeated and each.name in _LIMIT_OF:
            lists[each.number] = CountedList(each.name, _LIMIT_OF[each.name])
        elif not each.is_repeated and each.message_type is not None:
            below = counted_in(each.message_type)
            if below.lists or below.inner:
                # If a list and its message have the same name, the path contains this name only once.
                outer = {
                    number: one if one.path == each.name else one._replace(path=f"{each.name}.{one.path}")
                    for number, one in below.lists.items()
                }
                inner[each.number] = replace(below, lists=outer)
    return CountedFields(lists, inner)


def count_fields(data: bytes, descriptor: Descriptor, limits: Limits, path: str = "") -> Counts:
    """Count the items, entries and metrics in an unparsed message. `path` is a prefix for error messages.

    Raises:
        InvalidRequestError: The message has too many fields.
        MalformedError: The message cannot be parsed.
    """
    counts, others = Counts(), 0
    for _, _, counted in _walk(data, 0, len(data), counted_in(descriptor)):
        if counted is None:
            others += 1
            if others > _MAX_OTHER_FIELDS:
                text = f"must have at most {_MAX_OTHER_FIELDS} fields in addition to its items and metrics"
                raise InvalidRequestError("message", text)
            continue
        if counted.limit == _LIMIT_OF["metrics"]:
            count = counts.metrics = counts.metrics + 1
        else:
            count = counts.items = counts.items + 1
        most = getattr(limits, counted.limit)
        if count > most:
            text = f"has more than {most} elements; send fewer in a message"
            raise InvalidRequestError(f"{path}{counted.path}", text)
    return counts


def _walk(data: bytes, start: int, end: int, fields: CountedFields) -> Iterator[tuple[int, int, CountedList | None]]:
    """Yield each field's start, end and list (None for uncounted fields). Include fields in nested messages."""
    for number, body, stop in fields_of(data, start, end):
        counted = fields.lists.get(number) if body else None
        yield body, stop, counted
        if counted is None and body and number in fields.inner:
            yield from _walk(data, body, stop, fields.inner[number])


def fields_of(data: bytes, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield each field's number, and the start and end of the field's content.

    For a numeric field, the start is 0.

    Raises:
        MalformedError: The bytes are not a message.
    """
    position = start
    while position < end:
        tag, position = _varint(data, position, end)
        if tag & 7 != _BYTES:
            position = _skip(data, position, end, tag & 7)
            yield tag >> 3, 0, position
            continue
        size, position = _varint(data, position, end)
        stop = position + size
        if stop > end:
            raise MalformedError
        yield tag >> 3, position, stop
        position = stop


def _skip(data: bytes, position: int, end: int, kind: int) -> int:
    if kind == _VARINT:
        return _varint(data, position, end)[1]
    if kind == _FIXED_64:
        position += 8
    elif kind == _FIXED_32:
        position += 4
    else:  # our messages have no groups
        raise MalformedError
    if position > end:
        raise MalformedError
    return position


def _varint(data: bytes, position: int, end: int) -> tuple[int, int]:
    """Return a varint and the next position."""
    if position < end:
        byte = data[position]
        if byte < 0x80:
            return byte, position + 1
    value = shift = 0
    for place in range(position, min(end, position + _MAX_VARINT_BYTES)):
        byte = data[place]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place + 1
        shift += 7
    raise MalformedError


async def memory_bytes(data: bytes, counts: Counts, descriptor: Descriptor) -> int:
    """Return the estimated memory for a message and its reply. First check the message with `count_fields`.

    Raises:
        InvalidRequestError: The message has too many strings and images.
        MalformedError: The message cannot be parsed.
    """
    strings = await _strings_at_most(data)
    if strings > _MAX_STRINGS:
        strings = await _count_strings(data, descriptor)
    return counts.memory_bytes(len(data), strings)


async def _strings_at_most(data: bytes) -> int:
    # Count all bytes that could be a string's tag.
    if len(data) <= _SMALL_BYTES:
        return sum(map(data.count, _LIST_TAGS))
    found = 0
    for start in range(0, len(data), _SLICE_BYTES):
        if start:
            await give_way()
        part = np.frombuffer(data, np.uint8, min(_SLICE_BYTES, len(data) - start), start)
        found += sum(int(np.count_nonzero(part == tag)) for tag in _LIST_TAGS)
    return found


async def _count_strings(data: bytes, descriptor: Descriptor) -> int:
    found = 0
    for start, end, counted in _walk(data, 0, len(data), counted_in(descriptor)):
        if counted is None:
            continue
        count = 0
        for count, _ in enumerate(fields_of(data, start, end), 1):
            if not count % _STRINGS_AT_ONCE:
                await give_way()
            if found + count > _MAX_STRINGS:
                problem = f"has more than {_MAX_STRINGS} strings and images; send fewer items in a message"
                raise InvalidRequestError(counted.path, problem)
        found += count
    return found


async def parse(kind: type[M], data: bytes) -> M:
    """Parse a message that `count_fields` has checked, or raise DecodeError."""
    if len(data) <= _BYTES_AT_ONCE:
        return kind.FromString(data)
    message = kind()
    await _merge(message, data, 0, len(data))
    return message


async def _merge(message: Message, data: bytes, start: int, end: int) -> None:
    """Merge `data[start:end]` into a message, slice by slice."""
    messages = _messages_in(message.DESCRIPTOR)
    begin = position = start
    for count, (number, body, stop) in enumerate(fields_of(data, start, end), 1):
        if number in messages and body and stop - body > _BYTES_AT_ONCE:
            message.MergeFromString(data[begin:position])
            field = messages[number]
            held: Any = getattr(message, field.name)
            child = held.add() if field.is_repeated else held
            child.SetInParent()
            await _merge(child, data, body, stop)
            begin = stop
        elif stop - begin >= _BYTES_AT_ONCE:
            message.MergeFromString(data[begin:stop])
            begin = stop
            await give_way()
        elif count % _FIELDS_AT_ONCE == 0:
            await give_way()
        position = stop
    message.MergeFromString(data[begin:end])


@cache
def _messages_in(descriptor: Descriptor) -> Mapping[int, FieldDescriptor]:
    return {
        field.number: field
        for field in descriptor.fields
        if field.message_type is not None and not field.message_type.GetOptions().map_entry
    }
