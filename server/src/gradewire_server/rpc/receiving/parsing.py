"""Large messages from bytes to protobuf, with turns for the event loop's other work.

A protobuf message is the sum of its parts: parsing it in pieces that end between fields gives the same message.
"""

import asyncio
from collections.abc import Mapping
from functools import cache
from typing import Any, Final, TypeVar

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, Message

from gradewire_server.rpc.receiving.wire_counts import MalformedError, fields_of

_BYTES_AT_ONCE: Final = 512 * 1024
"""Parsed in 5 ms at the most, unless a single text or picture is larger."""
_FIELDS_AT_ONCE: Final = 4096
"""Looked at in some milliseconds."""

M = TypeVar("M", bound=Message)


async def parse(kind: type[M], data: bytes) -> M:
    """A message of the type; raises DecodeError.

    Args:
        kind: Class of the message.
        data: Well-formed as far as `count_fields` looks.
    """
    if len(data) <= _BYTES_AT_ONCE:
        return kind.FromString(data)
    message = kind()
    try:
        await _merge(message, data, 0, len(data))
    except MalformedError as error:
        raise DecodeError("a message in it is malformed") from error
    return message


async def _merge(message: Message, data: bytes, start: int, end: int) -> None:
    """Merges the fields between `start` and `end` into a message; messages among them that are large field by field."""
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
            await asyncio.sleep(0)
        elif count % _FIELDS_AT_ONCE == 0:
            await asyncio.sleep(0)
        position = stop
    message.MergeFromString(data[begin:end])


@cache
def _messages_in(descriptor: Descriptor) -> Mapping[int, FieldDescriptor]:
    """Fields of a message that are messages themselves, by number; maps are none."""
    return {field.number: field for field in descriptor.fields if _is_message(field.message_type)}


def _is_message(kind: Descriptor | None) -> bool:
    return kind is not None and not kind.GetOptions().map_entry
