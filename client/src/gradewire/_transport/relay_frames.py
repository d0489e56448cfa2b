"""What a forked process and the process that carries its calls say to each other: pickles with their length before."""

import asyncio
import pickle
import struct
from dataclasses import dataclass
from typing import Any, Literal

from gradewire.errors import GradewireError

_LENGTH = struct.Struct(">Q")

Method = Literal["score", "score_stream", "compare", "compare_stream", "prepare", "list_models"]


@dataclass(frozen=True, slots=True)
class Call:
    """The first frame of a call, to the carrying process.

    Attributes:
        method: Of the transport.
        timeout_s: As the method takes it.
        message: The request; empty where requests follow, or there is none.
    """

    method: Method
    timeout_s: float | None
    message: bytes = b""


@dataclass(frozen=True, slots=True)
class Said:
    """A message of the call: a further request, or a reply."""

    message: bytes


@dataclass(frozen=True, slots=True)
class Ended:
    """No message follows.

    Attributes:
        error: By which the call failed; None where it did not.
    """

    error: GradewireError | None = None


def encode_frame(value: Any) -> bytes:
    """A value as it travels."""
    pickled = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    return _LENGTH.pack(len(pickled)) + pickled


async def read_frame(reader: asyncio.StreamReader) -> Any:
    """The next value.

    Raises:
        EOFError: The other side has gone.
    """
    try:
        (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
        pickled = await reader.readexactly(length)
    except (asyncio.IncompleteReadError, OSError) as error:
        raise EOFError from error
    return pickle.loads(pickled)  # noqa: S301 - a socket that only a process and its own child have
