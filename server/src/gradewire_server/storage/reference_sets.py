"""What References.Prepare stored by the name of a set: synthetic answers, and the corpus of questions and references.

Synthetic answers carry a check over key and text, so what is torn or foreign counts as not there, which a metric
reports as NOT_PREPARED. An entry of a corpus is named by its content, so that the same one again changes nothing and
writers cannot disagree. A set only grows, so its number of entries tells whether it is the one that was counted. An
entry that is damaged or lost is a failure: left out silently, it would change the weights of all others.
"""

import asyncio
import json
import logging
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Final

from typing_extensions import override

from gradewire_proto.conventions.reference_sets import entry_name, entry_payload
from gradewire_server.domain.needs import PreparedAnswers, ReferenceEntries
from gradewire_server.domain.ports import ReferenceSets
from gradewire_server.domain.quoting import quoted
from gradewire_server.domain.result import Failure, Status
from gradewire_server.storage.keys import FORMAT_VERSION, HASH_BYTES
from gradewire_server.storage.prepared import TAKEN, PreparedStore, packed, payload_of

MAX_ENTRIES_PER_SET: Final = 1_000_000
_OFF_LOOP_ENTRIES: Final = 1000
_log = logging.getLogger(__name__)
_DAMAGED_SEAL: Final = Failure(
    Status.UNAVAILABLE, "what the reference set was sealed with is damaged; prepare it again as immutable"
)

_NOT_PREPARED: Final = Failure(
    Status.NOT_PREPARED,
    "reference_set: no corpus is prepared for it; call References.Prepare with its references and this metric, whose "
    "corpus is prepared, first (`gradewire prepare FILE` with this metric)",
)
_DAMAGED: Final = Failure(
    Status.UNAVAILABLE, "the corpus of the reference set is damaged; call References.Prepare with its references again"
)


class StoredReferenceSets(ReferenceSets):
    """All reference sets of a tenant.

    Args:
        store: Where they are kept; closed by its owner.
        namespace: See `CacheConfig.namespace`.
    """

    def __init__(self, store: PreparedStore, *, namespace: str) -> None:
        self._store = store
        self._answer_prefix = f"gradewire:{FORMAT_VERSION}:{namespace}:prepared:".encode()
        self._corpus_prefix = f"gradewire:{FORMAT_VERSION}:{namespace}:corpus:".encode()
        self._seal_prefix = f"gradewire:{FORMAT_VERSION}:{namespace}:seal:".encode()

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
            _log.error(
                "a corpus of %d entries has damaged ones: prepare the set again or under another name", len(members)
            )
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
                "use another name",
            )
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
        if failure is TAKEN:
            return Failure(
                Status.INVALID_INPUT,
                f"reference_set: {quoted(reference_set)} is immutable with other content; use another name",
            )
        return failure

    def _seal_key(self, reference_set: str) -> bytes:
        return self._seal_prefix + blake2b(reference_set.encode(), digest_size=HASH_BYTES).digest()

    def _answer_key(self, reference_set: str, question: str, reference: str) -> bytes:
        state = blake2b(digest_size=HASH_BYTES)
        for part in (reference_set, question, reference):
            encoded = part.encode()
            state.update(len(encoded).to_bytes(8, "little") + encoded)
        return self._answer_prefix + state.digest()

    def _corpus_group(self, reference_set: str) -> bytes:
        return self._corpus_prefix + blake2b(reference_set.encode(), digest_size=HASH_BYTES).digest()


def _opened(group: bytes, members: Mapping[bytes, bytes]) -> ReferenceEntries | None:
    """Entries of a group, None where one fails its check."""
    entries = []
    for name, value in members.items():
        payload = payload_of(group + name, value)
        if payload is None:
            return None
        question, *references = json.loads(payload)
        entries.append((question, tuple(references)))
    return tuple(entries)
