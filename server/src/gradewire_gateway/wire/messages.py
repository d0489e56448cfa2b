"""Messages from and to their JSON form; large ones on a thread, so that the event loop has its turns."""

import asyncio
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

from google.protobuf import json_format
from google.protobuf.message import Message

from gradewire_gateway.problems import invalid
from gradewire_gateway.wire.faults import find_fault

_LARGE_BYTES: Final = 64 << 10
"""Takes some milliseconds."""
_MOST_CHARACTERS: Final = 300

M = TypeVar("M", bound=Message)
T = TypeVar("T")


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
        return await self.made_of(data, lambda data: read_message(data, kind, at))

    async def read_object(self, data: bytes) -> dict[str, Any]:
        """An object of JSON; raises as the function of this name."""
        return await self.made_of(data, read_object)

    async def made_of(self, data: bytes, make: Callable[[bytes], T]) -> T:
        """What `make` makes of a body, which may raise ProblemError; of a large one on the thread."""
        if len(data) < _LARGE_BYTES:
            return make(data)
        return await asyncio.get_running_loop().run_in_executor(self._thread, make, data)

    async def write(self, message: Message) -> bytes:
        """The JSON form of a message on one line, without a line end."""
        if message.ByteSize() < _LARGE_BYTES:
            return write_message(message)
        return await asyncio.get_running_loop().run_in_executor(self._thread, write_message, message)


def read_object(data: bytes, at: str = "") -> dict[str, Any]:
    """An object of JSON, with no name twice; raises ProblemError.

    Args:
        data: UTF-8.
        at: What the text is, for the error; empty: the body.
    """
    what = at or "the body"
    try:
        value = json.loads(data.decode(), object_pairs_hook=_once)
    except UnicodeDecodeError as error:
        raise invalid(f"{what} is not UTF-8, at byte {error.start}") from None
    except RecursionError:
        raise invalid(f"{what} is nested too deeply") from None
    except ValueError as error:  # json.JSONDecodeError too
        raise invalid(f"{what} is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise invalid(f"{what} is not an object of JSON: send {{}} at the least")
    return value


def read_message(data: bytes, kind: type[M], at: str = "") -> M:
    """A message from its JSON form; as `Json.read`."""
    value = read_object(data, at)
    try:
        return json_format.ParseDict(value, kind())
    except Exception as error:
        descriptor: Any = kind.DESCRIPTOR
        fault = find_fault(value, descriptor)
        where = f"{at}: " if at else ""
        if fault is not None:
            raise invalid(f"{where}{fault.at or descriptor.name}: {fault.what}", fault.at) from None
        said = " ".join(str(error).split())[:_MOST_CHARACTERS]
        raise invalid(f"{where}this is not a {descriptor.name} in JSON: {said}") from error


def write_message(message: Message) -> bytes:
    """The JSON form of a message on one line."""
    return json_format.MessageToJson(message, indent=None, ensure_ascii=False).encode()


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the name {twice[:80]!r} stands twice in one object")
    return found
