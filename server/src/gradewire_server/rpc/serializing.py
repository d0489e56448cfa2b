"""Large replies to bytes, with turns for the event loop's other work."""

import asyncio
from typing import Final

from gradewire_proto.v1 import scoring_pb2

_RESULTS_AT_ONCE: Final = 4096
"""Take a few milliseconds."""
_ITEMS_TAG: Final = bytes((scoring_pb2.ScoreResponse.ITEMS_FIELD_NUMBER << 3 | 2,))


async def serialize_score(reply: scoring_pb2.ScoreResponse, max_bytes: int) -> bytes:
    """The bytes of a reply; only the first ones of a reply that is larger than `max_bytes`, but more than that."""
    metrics = max(1, len(reply.provenance))
    if len(reply.items) * metrics <= _RESULTS_AT_ONCE:
        return reply.SerializeToString()
    written = bytearray()
    results = 0
    for item in reply.items:
        body = item.SerializeToString()
        written += _ITEMS_TAG + _varint(len(body)) + body
        results += metrics
        if len(written) > max_bytes:
            return bytes(written)
        if results > _RESULTS_AT_ONCE:
            results = 0
            await asyncio.sleep(0)
    rest = scoring_pb2.ScoreResponse(provenance=reply.provenance, server_s=reply.server_s)
    return bytes(written) + rest.SerializeToString()


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
