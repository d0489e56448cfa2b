"""Stores of what References.Prepare was given or had written, above all synthetic answers: inputs, not cache luck.

Durable, without a time to live, never rotated, kept outside the vectors' stores. A value carries a check over key and
payload, so what is torn or foreign is noticed. What is there is never replaced by another text: scores that name the
set would no longer be those it was named for.
"""

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Protocol

from typing_extensions import override

from gradewire_server.domain.result import Failure, Status

_CHECK_BYTES = 8
TAKEN = Failure(
    Status.INVALID_INPUT,
    "synthetic_answers: the set already holds another answer for this reference; use another reference_set",
)


class PreparedStore(Protocol):
    """Values by key, and groups of values by name. Every operation answers with a failure rather than raise.

    A group is named by a key of its own length and prefix; its members have names of 16 bytes.
    """

    async def read(self, keys: Sequence[bytes]) -> list[bytes | None] | Failure:
        """Values by key, None for what is not there."""

    async def write(self, values: Mapping[bytes, bytes]) -> Failure | None:
        """Keeps values; they are durable when it returns None.

        A key that has another `whole` value keeps it: the answer is `TAKEN` then, whoever else writes at the same time.
        """

    async def member_count(self, group: bytes) -> int | Failure:
        """How many members a group has; cheap."""

    async def members(self, group: bytes) -> Mapping[bytes, bytes] | Failure:
        """All members by name, or a failure where one is lost. What is added meanwhile may be there or not."""

    async def add_members(self, group: bytes, values: Mapping[bytes, bytes]) -> Failure | None:
        """Keeps values by name; they are durable when it returns None, and what stood there before is replaced."""

    async def close(self) -> None:
        """Gives back what it holds."""


class MemoryPreparedStore(PreparedStore):
    """Answers that live as long as the process, for a server without disk and without Redis.

    Args:
        max_bytes: Bound of keys and values; beyond it storing fails, nothing is ever pushed out.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._values: dict[bytes, bytes] = {}
        self._groups: dict[bytes, dict[bytes, bytes]] = {}

    @override
    async def read(self, keys: Sequence[bytes]) -> list[bytes | None] | Failure:
        return [self._values.get(key) for key in keys]

    @override
    async def write(self, values: Mapping[bytes, bytes]) -> Failure | None:
        if any(differs(key, self._values.get(key), value) for key, value in values.items()):
            return TAKEN
        return self._update(self._values, values)

    @override
    async def member_count(self, group: bytes) -> int | Failure:
        return len(self._groups.get(group, ()))

    @override
    async def members(self, group: bytes) -> Mapping[bytes, bytes] | Failure:
        return dict(self._groups.get(group, {}))

    @override
    async def add_members(self, group: bytes, values: Mapping[bytes, bytes]) -> Failure | None:
        return self._update(self._groups.setdefault(group, {}), values)

    @override
    async def close(self) -> None:
        return

    def _update(self, there: dict[bytes, bytes], values: Mapping[bytes, bytes]) -> Failure | None:
        grown = sum(
            len(value) - len(there[key]) if key in there else len(key) + len(value) for key, value in values.items()
        )
        if self._bytes + grown > self._max_bytes:
            return Failure(
                Status.UNAVAILABLE,
                "the store of prepared references is full; give the engine a directory or a Redis server",
            )
        there.update(values)
        self._bytes += grown
        return None


def whole(key: bytes, value: bytes | None) -> bool:
    """Whether a value is there and passes its check; any other may be replaced."""
    return value is not None and value[:_CHECK_BYTES] == _check(key, value[_CHECK_BYTES:])


def differs(key: bytes, there: bytes | None, value: bytes) -> bool:
    """Whether a key holds another answer than `value`, which must not replace it."""
    return there != value and whole(key, there)


def _check(key: bytes, text: bytes) -> bytes:
    return blake2b(len(key).to_bytes(4, "little") + key + text, digest_size=_CHECK_BYTES).digest()


def packed(key: bytes, payload: bytes) -> bytes:
    """A value that is `whole` under `key`."""
    return _check(key, payload) + payload


def payload_of(key: bytes, value: bytes | None) -> bytes | None:
    """What was `packed` under `key`; None where there is no value, or one that fails its check."""
    return value[_CHECK_BYTES:] if value is not None and whole(key, value) else None
