"""Which corpus a prepared set is: the digest of its entries, worked out once each time that it has grown."""

import asyncio
from collections import OrderedDict
from copy import copy
from functools import partial
from typing import Final, TypeAlias

from gradewire_proto.conventions.reference_sets import corpus_digest, entry_name, entry_payload
from gradewire_server.concurrency.single_flight import SingleFlight
from gradewire_server.domain.needs import ReferenceEntries
from gradewire_server.domain.ports import ReferenceSets
from gradewire_server.domain.quoting import quoted
from gradewire_server.domain.result import Failure, Status

_MAX_REMEMBERED: Final = 4096
"""Sets whose digest is remembered."""
_MAX_HELD_ENTRIES: Final = 20_000
_MAX_HELD_CHARACTERS: Final = 8_000_000
"""Largest set that is kept after it was read, for a count that follows: about 20 MB with the entries."""
_OFF_LOOP_ENTRIES: Final = 512
_Name: TypeAlias = tuple[str, str]
"""Namespace and set."""


class CorpusDigests:
    """Digests of the prepared sets of a process, as one namespace sees them. Belongs to one event loop.

    Args:
        reference_sets: Keep the sets.
    """

    def __init__(self, reference_sets: ReferenceSets) -> None:
        self._reference_sets = reference_sets
        self._namespace = ""
        self._known: OrderedDict[_Name, tuple[str, str]] = OrderedDict()
        self._reading: SingleFlight[tuple[_Name, str], str | Failure] = SingleFlight()
        self._held: dict[tuple[_Name, str], ReferenceEntries] = {}

    def within(self, reference_sets: ReferenceSets, namespace: str) -> "CorpusDigests":
        """Those of a tenant's namespace, kept by `reference_sets`; what is remembered is bounded for all together."""
        view = copy(self)
        view._reference_sets = reference_sets  # noqa: SLF001 - of the same class
        view._namespace = namespace  # noqa: SLF001 - as above
        return view

    async def of_set(self, reference_set: str) -> str | Failure:
        """32 hex digits; NOT_PREPARED where the set has no corpus, or is not yet what it was sealed as."""
        name = (self._namespace, reference_set)
        revision = await self._reference_sets.entries_revision(reference_set)
        if isinstance(revision, Failure):
            return revision
        known = self._known.get(name)
        if known is not None and known[0] == revision:
            self._known.move_to_end(name)
            return known[1]
        return await self._reading.result((name, revision), partial(self._read, name, revision))

    async def entries(self, reference_set: str, digest: str) -> ReferenceEntries | Failure:
        """The entries of that digest; UNAVAILABLE where the set has others by now."""
        held = self._held.get(((self._namespace, reference_set), digest))
        if held is not None:
            return held
        entries = await self._reference_sets.entries(reference_set)
        if isinstance(entries, Failure):
            return entries
        now = await digest_of(entries)
        if now == digest:
            return entries
        return Failure(
            Status.UNAVAILABLE,
            f"reference_set: the corpus of {quoted(reference_set)} was {digest} when this call began and is {now} now; "
            "try again",
        )

    async def _read(self, name: _Name, revision: str) -> str | Failure:
        # `revision` was read before the entries: a set that grows meanwhile is read again by the next request.
        reference_set = name[1]
        entries = await self._reference_sets.entries(reference_set)
        if isinstance(entries, Failure):
            return entries
        digest = await digest_of(entries)
        seal = await self._reference_sets.seal_of(reference_set)
        if isinstance(seal, Failure):
            return seal
        if seal and seal != digest:
            return Failure(
                Status.NOT_PREPARED,
                f"reference_set: {quoted(reference_set)} is to have the corpus {seal} and has {len(entries)} entries "
                f"so far, {digest}; prepare the rest of it",
            )
        self._held.clear()
        if len(entries) <= _MAX_HELD_ENTRIES and _characters(entries) <= _MAX_HELD_CHARACTERS:
            self._held[name, digest] = entries
        self._known[name] = revision, digest
        self._known.move_to_end(name)
        if len(self._known) > _MAX_REMEMBERED:
            self._known.popitem(last=False)
        return digest


async def digest_of(entries: ReferenceEntries) -> str:
    """32 hex digits over distinct entries in their normal form, whatever their order."""
    if len(entries) > _OFF_LOOP_ENTRIES:
        return await asyncio.to_thread(_digest, entries)
    return _digest(entries)


def _digest(entries: ReferenceEntries) -> str:
    return corpus_digest(entry_name(entry_payload(question, references)) for question, references in entries)


def _characters(entries: ReferenceEntries) -> int:
    return sum(len(question) + sum(map(len, references)) for question, references in entries)
