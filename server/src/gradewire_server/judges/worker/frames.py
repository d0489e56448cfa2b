"""Frames between the server and a judge's worker: four bytes of length, big-endian, then that much JSON."""

import json
import struct
from typing import Any, Final

MAX_FRAME_BYTES: Final = 4 << 20
"""The longest message, a run of some thousand token ids, takes a hundredth of this."""

_LENGTH: Final = struct.Struct(">I")


class FrameError(Exception):
    """What was received, or is to be sent, is not a valid frame."""


def to_frame(message: dict[str, Any]) -> bytes:
    """One message, ready to be sent.

    Floats survive exactly: JSON carries the shortest digits that read back as the same number.

    Raises:
        FrameError: It is longer than MAX_FRAME_BYTES, or holds NaN or infinity.
    """
    try:
        body = json.dumps(message, separators=(",", ":"), allow_nan=False).encode()
    except ValueError as error:
        raise FrameError(f"a message cannot be written: {error}") from error
    if len(body) > MAX_FRAME_BYTES:
        raise FrameError(f"a message of {len(body)} bytes; at most {MAX_FRAME_BYTES} are allowed")
    return _LENGTH.pack(len(body)) + body


class FrameReader:
    """Cuts a stream of bytes into messages, however it arrives."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[dict[str, Any]]:
        """Takes bytes; returns the messages that are whole by now.

        Raises:
            FrameError: A length is beyond MAX_FRAME_BYTES, or a body is not a JSON object.
        """
        self._buffer += data
        messages = []
        while len(self._buffer) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer)
            if length > MAX_FRAME_BYTES:
                raise FrameError(f"a frame of {length} bytes; at most {MAX_FRAME_BYTES} are allowed")
            end = _LENGTH.size + length
            if len(self._buffer) < end:
                break
            messages.append(_parse(bytes(self._buffer[_LENGTH.size : end])))
            del self._buffer[:end]
        return messages


def _parse(body: bytes) -> dict[str, Any]:
    try:
        message = json.loads(body)
    except ValueError as error:
        raise FrameError(f"a frame that is not JSON: {error}") from error
    if not isinstance(message, dict):
        raise FrameError("a frame that is not a JSON object")
    return message
