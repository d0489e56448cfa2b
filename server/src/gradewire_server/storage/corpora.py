"""Corpora of reference sets: the questions and references that weights of rare words are counted over.

An entry is named by its content, so that the same one again changes nothing and writers cannot disagree. A set only
grows, so its number of entries tells whether it is the one that was counted. An entry that is damaged or lost is
a failure: left out silently, it would change the weights of all others.
"""

import asyncio
import json
import logging
from collections.abc import Mapping
from hashlib import blake2b
from typing import Final

from gradewire_server.domain.needs import ReferenceEntries
from gradewire_server.domain.result import Failure, Status
from gradewire_server.storage.keys import FORMAT_VERSION, HASH_BYTES
from gradewire_server.storage.prepared import PreparedStore, sealed, whole

MAX_ENTRIES_PER_SET: Final = 1_000_000
_OFF_LOOP_ENTRIES: Final = 1000
_CHECK_BYTES: Final = 8
_log = logging.getLogger(__name__)

_NOT_PREPARED: Final = Failure(
    Status.NOT_PREPARED,
    "reference_set: no corpus is prepared for it; call References.Prepare with its references and this metric, whose "
    "corpus is prepared, first (`gradewire prepare FILE` with this metric)",
)
_DAMAGED: Final = Failure(
    Status.UNAVAILABLE, "the corpus of the reference set is damaged; call References.Prepare with its references again"
)


class CorpusBook:
    """The corpora of all reference sets of a tenant.

    Args:
        store: Where they are kept.
        namespace: See `CacheConfig.namespace`.
    """

    def __init__(self, store: PreparedStore, *, namespace: str) -> None:
        self._store = store
        self._prefix = f"gradewire:{FORMAT_VERSION}:{namespace}:corpus:".encode()

    async def revision(self, reference_set: str) -> str | Failure:
        """See `Engine.entries_revision`."""
        count = await self._store.member_count(self._group(reference_set))
        if isinstance(count, Failure):
            return count
        return str(count) if count else _NOT_PREPARED

    async def entries(self, reference_set: str) -> ReferenceEntries | Failure:
        """See `Engine.entries`; in no particular order."""
        group = self._group(reference_set)
        members = await self._store.members(group)
        if isinstance(members, Failure):
            return members
        if not members:
            return _NOT_PREPARED
        large = len(members) > _OFF_LOOP_ENTRIES
        entries = await asyncio.to_thread(_opened, group, members) if large else _opened(group, members)
        if entries is None:
            _log.error("a corpus of %d entries has damaged ones; preparing the set again mends it", len(members))
        return _DAMAGED if entries is None else entries

    async def store(self, reference_set: str, entries: ReferenceEntries) -> Failure | None:
        """See `Engine.store_entries`."""
        group = self._group(reference_set)
        count = await self._store.member_count(group)
        if isinstance(count, Failure):
            return count
        if count + len(entries) > MAX_ENTRIES_PER_SET:
            return Failure(
                Status.INVALID_INPUT,
                f"entries: the corpus of a reference set holds at most {MAX_ENTRIES_PER_SET}; use another one",
            )
        values = {}
        for question, references in entries:
            payload = json.dumps([question, *references], ensure_ascii=False).encode()
            name = blake2b(payload, digest_size=HASH_BYTES).digest()
            values[name] = sealed(group + name, payload)
        return await self._store.add_members(group, values)

    def _group(self, reference_set: str) -> bytes:
        return self._prefix + blake2b(reference_set.encode(), digest_size=HASH_BYTES).digest()


def _opened(group: bytes, members: Mapping[bytes, bytes]) -> ReferenceEntries | None:
    """Entries of a group, None where one fails its check."""
    entries = []
    for name, value in members.items():
        if not whole(group + name, value):
            return None
        question, *references = json.loads(value[_CHECK_BYTES:])
        entries.append((question, tuple(references)))
    return tuple(entries)
