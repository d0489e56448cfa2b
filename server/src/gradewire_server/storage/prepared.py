"""What References.Prepare stored of a reference set, above all synthetic answers: inputs, not cache luck.

Durable, without a time to live, never rotated, kept outside the vectors' stores. A value carries a check over key and
text, so what is torn or foreign counts as not there, which a metric reports as NOT_PREPARED. What is there is never
replaced by another text: scores that name the set would no longer be those it was named for.
"""

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Protocol

from gradewire_server.domain.result import Failure, Status
from gradewire_server.storage.keys import FORMAT_VERSION

_CHECK_BYTES = 8
_HASH_BYTES = 16
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


class PreparedAnswersBook:
    """Synthetic answers of all reference sets of a tenant.

    Args:
        store: Where they are kept.
        namespace: See `CacheConfig.namespace`.
    """

    def __init__(self, store: PreparedStore, *, namespace: str) -> None:
        self._store = store
        self._prefix = f"gradewire:{FORMAT_VERSION}:{namespace}:prepared:".encode()

    async def find(
        self, reference_set: str, question: str, references: Sequence[str]
    ) -> tuple[str | None, ...] | Failure:
        """One answer per reference, None where there is none."""
        keys = [self._key(reference_set, question, reference) for reference in references]
        values = await self._store.read(keys)
        if isinstance(values, Failure):
            return values
        return tuple(_unseal(key, value) for key, value in zip(keys, values, strict=True))

    async def store(self, reference_set: str, question: str, answers: Mapping[str, str]) -> Failure | None:
        """Keeps answers by reference; durable when it returns None. `TAKEN` where one has another answer already."""
        keys = {self._key(reference_set, question, reference): answer for reference, answer in answers.items()}
        return await self._store.write({key: sealed(key, answer.encode()) for key, answer in keys.items()})

    async def close(self) -> None:
        """Closes the store."""
        await self._store.close()

    def _key(self, reference_set: str, question: str, reference: str) -> bytes:
        state = blake2b(digest_size=_HASH_BYTES)
        for part in (reference_set, question, reference):
            encoded = part.encode()
            state.update(len(encoded).to_bytes(8, "little") + encoded)
        return self._prefix + state.digest()


class MemoryPreparedStore:
    """Answers that live as long as the process, for an engine without disk and without Redis.

    Args:
        max_bytes: Bound of keys and values; beyond it storing fails, nothing is ever pushed out.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._values: dict[bytes, bytes] = {}
        self._groups: dict[bytes, dict[bytes, bytes]] = {}

    async def read(self, keys: Sequence[bytes]) -> list[bytes | None] | Failure:
        """See `PreparedStore`."""
        return [self._values.get(key) for key in keys]

    async def write(self, values: Mapping[bytes, bytes]) -> Failure | None:
        """See `PreparedStore`."""
        if any(differs(key, self._values.get(key), value) for key, value in values.items()):
            return TAKEN
        return self._update(self._values, values)

    async def member_count(self, group: bytes) -> int | Failure:
        """See `PreparedStore`."""
        return len(self._groups.get(group, ()))

    async def members(self, group: bytes) -> Mapping[bytes, bytes] | Failure:
        """See `PreparedStore`."""
        return dict(self._groups.get(group, {}))

    async def add_members(self, group: bytes, values: Mapping[bytes, bytes]) -> Failure | None:
        """See `PreparedStore`."""
        return self._update(self._groups.setdefault(group, {}), values)

    async def close(self) -> None:
        """See `PreparedStore`."""

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


def sealed(key: bytes, payload: bytes) -> bytes:
    """A value that is `whole` under `key`."""
    return _check(key, payload) + payload


def _unseal(key: bytes, value: bytes | None) -> str | None:
    return value[_CHECK_BYTES:].decode() if value is not None and whole(key, value) else None
