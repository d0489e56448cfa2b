"""Large messages from bytes to protobuf, with turns for the event loop's other work.

A protobuf message is the sum of its parts: parsing it in pieces that end between fields gives the same message.
"""

import asyncio
from typing import Final, TypeVar

from google.protobuf.message import Message

from gradewire_server.rpc.receiving.wire_counts import counted_in, fields_of

_BYTES_AT_ONCE: Final = 512 * 1024
"""Parsed in 5 ms at the most, unless a single item is larger."""

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
    await _merge(message, data, 0, len(data))
    return message


async def _merge(message: Message, data: bytes, start: int, end: int) -> None:
    """Merges the fields between `start` and `end` into a message."""
    inner = counted_in(message.DESCRIPTOR).inner
    begin = position = start
    for number, body, stop in fields_of(data, start, end):
        if number in inner and stop - body > _BYTES_AT_ONCE:
            message.MergeFromString(data[begin:position])
            child: Message = getattr(message, message.DESCRIPTOR.fields_by_number[number].name)
            child.SetInParent()
            await _merge(child, data, body, stop)
            begin = stop
        elif stop - begin >= _BYTES_AT_ONCE:
            message.MergeFromString(data[begin:stop])
            begin = stop
            await asyncio.sleep(0)
        position = stop
    message.MergeFromString(data[begin:end])
