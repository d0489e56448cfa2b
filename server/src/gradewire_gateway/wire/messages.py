"""Messages from and to their JSON form; large ones on a thread, so that the event loop has its turns."""

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from google.protobuf import json_format
from google.protobuf.message import Message

from gradewire_gateway.problems import invalid

_LARGE_BYTES: Final = 64 << 10
"""Takes some milliseconds."""
_AT: Final = re.compile(r' at "?\w+((?:\.[\w.\[\]]+)?)"?')
_UNKNOWN: Final = re.compile(r'has no field named "(\w{1,100})"')
_IN: Final = re.compile(r"Failed to parse (\w+) field")
_MOST_CHARACTERS: Final = 300

M = TypeVar("M", bound=Message)


class Json:
    """Reads and writes; one thread for all that is large, which bounds what reading takes at a time."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="gradewire-json")

    def close(self) -> None:
        """Ends the thread."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def read(self, data: bytes, kind: type[M], at: str = "") -> M:
        """A message from its JSON form; raises ProblemError, which names the field.

        Args:
            data: UTF-8.
            kind: Its class.
            at: What the text is, for the error: "line 3"; empty: the body.
        """
        if len(data) < _LARGE_BYTES:
            return read_message(data, kind, at)
        return await asyncio.get_running_loop().run_in_executor(self._thread, read_message, data, kind, at)

    async def write(self, message: Message) -> bytes:
        """The JSON form of a message on one line, without a line end."""
        if message.ByteSize() < _LARGE_BYTES:
            return write_message(message)
        return await asyncio.get_running_loop().run_in_executor(self._thread, write_message, message)


def read_message(data: bytes, kind: type[M], at: str = "") -> M:
    """A message from its JSON form; as `Json.read`."""
    what = at or "the body"
    name = kind.DESCRIPTOR.name
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise invalid(f"{what} is not UTF-8, at byte {error.start}") from None
    if not text.strip():
        raise invalid(f"{what} is empty: send a {name} in JSON, {{}} at the least")
    try:
        return json_format.Parse(text, kind())
    except json_format.ParseError as error:
        said = " ".join(str(error).partition("\n")[0].split())[:_MOST_CHARACTERS]
        raise invalid(f"{what} is not a {name} in JSON: {said}", _field_of(str(error))) from None
    except RecursionError:
        raise invalid(f"{what} is not a {name} in JSON: it is nested too deeply") from None


def write_message(message: Message) -> bytes:
    """The JSON form of a message on one line."""
    return json_format.MessageToJson(message, indent=None, ensure_ascii=False).encode()


def _field_of(said: str) -> str:
    """Path of the field that protobuf's error names; empty where it names none."""
    at, unknown = _AT.search(said), _UNKNOWN.search(said)
    names = [at[1].strip(".")] if at else _IN.findall(said)
    return ".".join(name for name in (*names, unknown[1] if unknown else "") if name)
