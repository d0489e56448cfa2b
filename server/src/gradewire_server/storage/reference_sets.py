"""Reference sets by name, and the interface for stores of their synthetic answers and corpora."""

import asyncio
import json
import logging
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Final, Protocol

from typing_extensions import override

from gradewire_proto.wire_rules import entry_name, entry_payload
from gradewire_server.domain.items import Failure, Status, quoted
from gradewire_server.domain.needs import PreparedAnswers, ReferenceEntries
from gradewire_server.domain.ports import ReferenceSets
from gradewire_server.storage.codec import FORMAT_VERSION, HASH_BYTES

_log = logging.getLogger(__name__)

_CHECK_BYTES = 8
ALREADY_HELD = Failure(
    Status.INVALID_INPUT,
    "synthetic_answers: the set already has a different answer for this reference; use a new reference_set",
)

MAX_ENTRIES_PER_SET: Final = 1_000_000
_OFF_LOOP_ENTRIES: Final = 1000
_DAMAGED_SEAL: Final = Failure(
    Status.UNAVAILABLE, "the reference set's immutable digest is damaged; prepare the set again as immutable"
)

_NOT_PREPARED: Final = Failure(
    Status.NOT_PREPARED,
    "reference_set: no corpus is prepared for this set; first call References.Prepare with its references and this "
    "metric (`gradewire prepare FILE` with this metric)",
)
_DAMAGED: Final = Failure(
    Status.UNAVAILABLE, "the reference set's corpus is damaged; call References.Prepare with its references again"
)


class PreparedStore(Protocol):
    """A store that holds values by key, and groups of values by name. Methods return failures and never raise errors.

    A group's name differs from every key in length and prefix. A group's members have names of 16 bytes.
    """

    async def read(self, keys: Sequence[bytes]) -> list[bytes | None] | Failure:
        """Return each key's value, or None for a key without a value."""

    async def write(self, values: Mapping[bytes, bytes]) -> Failure | None:
        """Store values, which are durable when this method returns None.

        If a key already has a different, intact value, keep that value and return `ALREADY_HELD`, even with concurrent
        writers.
        """

    async def member_count(self, group: bytes) -> int | Failure:
        """Return a group's member count, without reading the members."""

    async def members(self, group: bytes) -> Mapping[bytes, bytes] | Failure:
        """Return all members by name, or a failure if a member is lost. New members may be missing."""

    async def add_members(self, group: bytes, values: Mapping[bytes, bytes]) -> Failure | None:
        """Store members by name, and replace earlier values. Members are durable when this method returns None."""

    async def close(self) -> None:
        """Release the store's resources."""


class MemoryPreparedStore(PreparedStore):
    """A store in memory, for a server with neither a disk store nor Redis.

    The store never evicts values. A write fails if keys and values together would exceed `max_bytes`.
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
            return ALREADY_HELD
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
                "the store of prepared references is full; set disk_directory or redis_url",
            )
        there.update(values)
        self._bytes += grown
        return None


def is_intact(key: bytes, value: bytes | None) -> bool:
    """Return True if there is a value that passes its check. Callers may replace any other value."""
    return value is not None and value[:_CHECK_BYTES] == _check(key, value[_CHECK_BYTES:])


def differs(key: bytes, there: bytes | None, value: bytes) -> bool:
    """Return True if the stored value, `there`, must be kept: it is intact and differs from `value`."""
    return there != value and is_intact(key, there)


def _check(key: bytes, text: bytes) -> bytes:
    return blake2b(len(key).to_bytes(4, "little") + key + text, digest_size=_CHECK_BYTES).digest()


def packed(key: bytes, payload: bytes) -> bytes:
    """Return the value to store under `key` for a payload. `is_intact` accepts this value."""
    return _check(key, payload) + payload


def payload_of(key: bytes, value: bytes | None) -> bytes | None:
    """Return the payload of a value that `packed` made; None if the value is missing or fails its check."""
    return value[_CHECK_BYTES:] if value is not None and is_intact(key, value) else None


class StoredReferenceSets(ReferenceSets):
    """A tenant's reference sets in a store. The caller closes the store."""

    def __init__(self, store: PreparedStore, *, namespace: str) -> None:
        self._store = store
        self._prefix = f"gradewire:{FORMAT_VERSION}:{namespace}:".encode()

    @override
    async def prepared_answers(
        self, reference_set: str, question: str, references: Sequence[str]
    ) -> PreparedAnswers | Failure:
        keys = [self._answer_key(reference_set, question, reference) for reference in references]
        values = await self._store.read(keys)
        if isinstance(values, Failure):
            return values
        found = map(payload_of, keys, values)
        return tuple(None if payload is None else payload.decode() for payload in found)

    @override
    async def store_prepared(self, reference_set: str, question: str, answers: Mapping[str, str]) -> Failure | None:
        keys = {self._answer_key(reference_set, question, reference): answer for reference, answer in answers.items()}
        return await self._store.write({key: packed(key, answer.encode()) for key, answer in keys.items()})

    @override
    async def entries_revision(self, reference_set: str) -> str | Failure:
        count = await self._store.member_count(self._corpus_group(reference_set))
        if isinstance(count, Failure):
            return count
        return str(count) if count else _NOT_PREPARED

    @override
    async def entries(self, reference_set: str) -> ReferenceEntries | Failure:
        group = self._corpus_group(reference_set)
        members = await self._store.members(group)
        if isinstance(members, Failure):
            return members
        if not members:
            return _NOT_PREPARED
        large = len(members) > _OFF_LOOP_ENTRIES
        entries = await asyncio.to_thread(_opened, group, members) if large else _opened(group, members)
        if entries is None:
            _log.error("A corpus of %d entries is damaged. Prepare the set again, or use another name", len(members))
        return _DAMAGED if entries is None else entries

    @override
    async def store_entries(self, reference_set: str, entries: ReferenceEntries, *, seal: str = "") -> Failure | None:
        group = self._corpus_group(reference_set)
        sealed = await self.seal_of(reference_set)
        if isinstance(sealed, Failure):
            return sealed
        if sealed != seal:
            return Failure(
                Status.INVALID_INPUT,
                f"reference_set: {quoted(reference_set)} is immutable{f' ({sealed})' if sealed else ''}; "
                "use a different name",
            )
        count = await self._store.member_count(group)
        if isinstance(count, Failure):
            return count
        if count + len(entries) > MAX_ENTRIES_PER_SET:
            return Failure(
                Status.INVALID_INPUT,
                f"entries: a reference set's corpus has at most {MAX_ENTRIES_PER_SET} entries; use another set",
            )
        values = {}
        for question, references in entries:
            payload = entry_payload(question, references)
            name = entry_name(payload)
            values[name] = packed(group + name, payload)
        return await self._store.add_members(group, values)

    @override
    async def seal_of(self, reference_set: str) -> str | Failure:
        key = self._seal_key(reference_set)
        found = await self._store.read([key])
        if isinstance(found, Failure):
            return found
        payload = payload_of(key, found[0])
        if payload is None:
            return "" if found[0] is None else _DAMAGED_SEAL
        return payload.decode()

    @override
    async def seal(self, reference_set: str, digest: str) -> Failure | None:
        key = self._seal_key(reference_set)
        failure = await self._store.write({key: packed(key, digest.encode())})
        if failure is ALREADY_HELD:
            return Failure(
                Status.INVALID_INPUT,
                f"reference_set: {quoted(reference_set)} is immutable and has different content; use a different name",
            )
        return failure

    def _seal_key(self, reference_set: str) -> bytes:
        return self._prefix + b"seal:" + blake2b(reference_set.encode(), digest_size=HASH_BYTES).digest()

    def _answer_key(self, reference_set: str, question: str, reference: str) -> bytes:
        state = blake2b(digest_size=HASH_BYTES)
        for part in (reference_set, question, reference):
            encoded = part.encode()
            state.update(len(encoded).to_bytes(8, "little") + encoded)
        return self._prefix + b"prepared:" + state.digest()

    def _corpus_group(self, reference_set: str) -> bytes:
        return self._prefix + b"corpus:" + blake2b(reference_set.encode(), digest_size=HASH_BYTES).digest()


def _opened(group: bytes, members: Mapping[bytes, bytes]) -> ReferenceEntries | None:
    """Return a group's entries; None if an entry fails its check."""
    entries = []
    for name, value in members.items():
        payload = payload_of(group + name, value)
        if payload is None:
            return None
        question, *references = json.loads(payload)
        entries.append((question, tuple(references)))
    return tuple(entries)
