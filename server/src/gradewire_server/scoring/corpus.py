"""Corpora for weights of rare words: entries, digests, and document frequencies of a request or a prepared set."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from typing import Final, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from gradewire_proto.choices import Corpus
from gradewire_proto.wire_rules import corpus_digest, entry_name, entry_payload
from gradewire_server.domain.items import Failure, Item, Status, quoted
from gradewire_server.domain.needs import CorpusStatistics, DocumentFrequencies, ReferenceEntries, Terms
from gradewire_server.domain.ports import Ports
from gradewire_server.metrics.common import check_question, check_references
from gradewire_server.metrics.encoder.bertscore import behind_question
from gradewire_server.metrics.overlap.cider import document_frequencies
from gradewire_server.resilience import SingleFlight

_DIGEST_BYTES = 6
_WITH_QUESTION = b"with_question"

_MAX_REMEMBERED: Final = 4096
"""The most sets whose digests are remembered."""
_MAX_HELD_ENTRIES: Final = 20_000
_MAX_HELD_CHARACTERS: Final = 8_000_000
"""The largest set that is kept in memory after reading, for a count that follows: about 20 MB with the entries."""
_OFF_LOOP_ENTRIES: Final = 512

MAX_REMEMBERED_TERMS: Final = 2_000_000
"""The most terms of all remembered corpora (about 250 bytes each); the one counted last always stays."""
_OFF_LOOP_CHARS: Final = 8_000
"""Characters of a corpus above which it is counted on a thread: about 5 ms of work."""
T = TypeVar("T")

_UNNAMED: Final = Failure(
    Status.NOT_PREPARED,
    "reference_set: a prepared corpus needs the name of a set; call References.Prepare with this metric first "
    "(`gradewire prepare FILE` with this metric)",
)
_EMPTY: Final = Failure(
    Status.INVALID_INPUT, "references: no item of the request has references that a corpus could be counted over"
)
_NO_QUESTION: Final = Failure(
    Status.NOT_PREPARED,
    "reference_set: none of its entries has a question, and this metric counts references behind their questions; call "
    "References.Prepare with questions (`gradewire prepare FILE` with this metric)",
)

_Name: TypeAlias = tuple[str, str]
"""A namespace and a set."""

_Key: TypeAlias = tuple[str, str, CorpusStatistics]
"""A namespace, a set, and the statistics to count."""


def entry_of(question: str, references: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Return a question and its distinct references, sorted: repetitions and order do not change a document."""
    return question, tuple(sorted(set(references)))


def distinct_references(entries: ReferenceEntries, *, with_question: bool = False) -> list[str]:
    """Return the distinct reference texts, sorted; with `with_question`, each after its question, if it has one."""
    if not with_question:
        return sorted({text for _, references in entries for text in references})
    asked = [(question, references) for question, references in entries if check_question(question) is None]
    return sorted({behind_question(question, text) for question, references in asked for text in references})


def name_of(name: str, documents: int, entries: ReferenceEntries, *, with_question: bool = False) -> str:
    """Return NAME:DOCUMENTS:DIGEST; DIGEST has 12 hex digits over the distinct entries, independent of their order.

    A corpus of references with their questions has another digest than the corpus without them.
    """
    state = blake2b(digest_size=_DIGEST_BYTES, person=_WITH_QUESTION if with_question else b"")
    for question, references in sorted(entries):
        for text in (str(len(references)), question, *references):
            encoded = text.encode()
            state.update(len(encoded).to_bytes(8, "big") + encoded)
    return f"{name}:{documents}:{state.hexdigest()}"


def count_tokens(ids: Sequence[NDArray[np.int32]]) -> dict[Hashable, int]:
    """Return the number of texts in which each token number occurs.

    Args:
        ids: For each text, int32[tokens], not negative.
    """
    if not ids:
        return {}
    texts = np.repeat(np.arange(len(ids), dtype=np.int64), [len(each) for each in ids])
    occurrences = np.unique((texts << 32) | np.concatenate(ids).astype(np.int64))
    numbers, counts = np.unique(occurrences & 0xFFFFFFFF, return_counts=True)
    return dict(zip(numbers.tolist(), counts.tolist(), strict=True))


async def digest_of(entries: ReferenceEntries) -> str:
    """Return 32 hex digits over distinct normalised entries, independent of their order."""
    if len(entries) > _OFF_LOOP_ENTRIES:
        return await asyncio.to_thread(_digest, entries)
    return _digest(entries)


def _digest(entries: ReferenceEntries) -> str:
    return corpus_digest(entry_name(entry_payload(question, references)) for question, references in entries)


def _characters(entries: ReferenceEntries) -> int:
    return sum(len(question) + sum(map(len, references)) for question, references in entries)


class Corpora:
    """The prepared corpora of a process and their digests, for one namespace and one event loop."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._namespace = ""
        self._digests: OrderedDict[_Name, tuple[str, str]] = OrderedDict()
        self._reading: SingleFlight[tuple[_Name, str], str | Failure] = SingleFlight()
        self._held: dict[tuple[_Name, str], ReferenceEntries] = {}
        self._counted: OrderedDict[_Key, tuple[str, DocumentFrequencies]] = OrderedDict()
        self._counting: SingleFlight[tuple[_Key, str], DocumentFrequencies | Failure] = SingleFlight()

    def within(self, ports: Ports, namespace: str) -> "Corpora":
        """Return the corpora of a tenant's namespace and its ports; all share the limits of remembered data."""
        view = copy(self)
        view._ports, view._namespace = ports, namespace  # noqa: SLF001 - of the same class
        return view

    async def digest_of(self, reference_set: str) -> str | Failure:
        """Return 32 hex digits over the entries of a set; NOT_PREPARED if it has none or is incomplete."""
        if not reference_set:
            return _UNNAMED
        name = (self._namespace, reference_set)
        revision = await self._ports.reference_sets.entries_revision(reference_set)
        if isinstance(revision, Failure):
            return revision
        known = self._digests.get(name)
        if known is not None and known[0] == revision:
            self._digests.move_to_end(name)
            return known[1]
        return await self._reading.result((name, revision), partial(self._read, name, revision))

    async def of_set(
        self, reference_set: str, need: CorpusStatistics, digest: str = ""
    ) -> DocumentFrequencies | Failure:
        """Return the document frequencies of a prepared set, or NOT_PREPARED.

        `digest` is the digest of the corpus to use, from `digest_of`; "" for the current one.
        """
        meant = digest or await self.digest_of(reference_set)
        if isinstance(meant, Failure):
            return meant
        key = (self._namespace, reference_set, need)
        known = self._counted.get(key)
        if known is not None and known[0] == meant:
            self._counted.move_to_end(key)
            return known[1]
        # The work belongs to the process, so that the next request need not start again if this one gives up.
        return await self._counting.result((key, meant), partial(self._count_set, key, meant))

    async def count(
        self, name: str, entries: ReferenceEntries, need: CorpusStatistics
    ) -> DocumentFrequencies | Failure:
        """Count distinct entries from `entry_of`; `name` becomes the first part of the result's name."""
        # Large corpora are counted on a thread, so that they do not block the event loop.
        run = asyncio.to_thread if _is_large(entries, need) else _at_once
        if need.terms is Terms.NGRAMS:
            return await run(
                lambda: DocumentFrequencies(name_of(name, len(entries), entries), len(entries), _ngrams_of(entries))
            )
        with_question = need.with_question
        texts = await run(lambda: distinct_references(entries, with_question=with_question))
        if not texts:
            return _NO_QUESTION
        ids = await self._ports.embeddings.token_ids(need.model, texts)
        if isinstance(ids, Failure):
            return ids
        documents = len(texts)
        return await run(
            lambda: DocumentFrequencies(
                name_of(name, documents, entries, with_question=with_question), documents, count_tokens(ids)
            )
        )

    async def _read(self, name: _Name, revision: str) -> str | Failure:
        # `revision` was read before the entries, so the next request reads a set again that has grown in between.
        sets, reference_set = self._ports.reference_sets, name[1]
        entries = await sets.entries(reference_set)
        if isinstance(entries, Failure):
            return entries
        digest = await digest_of(entries)
        seal = await sets.seal_of(reference_set)
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
        self._digests[name] = revision, digest
        self._digests.move_to_end(name)
        if len(self._digests) > _MAX_REMEMBERED:
            self._digests.popitem(last=False)
        return digest

    async def _entries(self, name: _Name, digest: str) -> ReferenceEntries | Failure:
        """Return the entries with that digest; UNAVAILABLE if the set has changed."""
        held = self._held.get((name, digest))
        if held is not None:
            return held
        entries = await self._ports.reference_sets.entries(name[1])
        if isinstance(entries, Failure) or (now := await digest_of(entries)) == digest:
            return entries
        return Failure(
            Status.UNAVAILABLE,
            f"reference_set: the corpus of {quoted(name[1])} was {digest} when this call began and is {now} now; "
            "try again",
        )

    async def _count_set(self, key: _Key, digest: str) -> DocumentFrequencies | Failure:
        namespace, reference_set, need = key
        entries = await self._entries((namespace, reference_set), digest)
        if isinstance(entries, Failure):
            return entries
        counted = await self.count(reference_set, entries, need)
        if isinstance(counted, DocumentFrequencies):
            self._remember(key, digest, counted)
        return counted

    def _remember(self, key: _Key, digest: str, counted: DocumentFrequencies) -> None:
        self._counted[key] = digest, counted
        self._counted.move_to_end(key)
        terms = sum(len(each.counts) for _, each in self._counted.values())
        while terms > MAX_REMEMBERED_TERMS and len(self._counted) > 1:
            _, (_, oldest) = self._counted.popitem(last=False)
            terms -= len(oldest.counts)


@dataclass(slots=True, eq=False)
class RequestCorpora:
    """The corpora that the metrics of one request may need; each is counted once for all items.

    Attributes:
        items: All items of the request, in any order.
        digest: The digest of the set's corpus when the call started; "" for the current one.
    """

    corpora: Corpora
    items: Sequence[Item]
    reference_set: str = ""
    digest: str = ""
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _found: dict[CorpusStatistics, DocumentFrequencies | Failure] = field(default_factory=dict)

    async def count(self, need: CorpusStatistics) -> DocumentFrequencies | Failure:
        """Answer a need."""
        if need.corpus is Corpus.PREPARED:
            return await self.corpora.of_set(self.reference_set, need, self.digest)
        async with self._lock:
            if need not in self._found:
                self._found[need] = await self._count(need)
            return self._found[need]

    async def _count(self, need: CorpusStatistics) -> DocumentFrequencies | Failure:
        entries = entries_of((item.question, item.references) for item in self.items)
        if not entries:
            return _EMPTY
        return await self.corpora.count(Corpus.REQUEST, entries, need)


def entries_of(pairs: Iterable[tuple[str, Sequence[str]]]) -> ReferenceEntries:
    """Return the distinct entries, normalised and sorted, without those that no metric would grade."""
    return tuple(sorted({entry_of(*pair) for pair in pairs if check_references(tuple(pair[1])) is None}))


def _ngrams_of(entries: ReferenceEntries) -> dict[Hashable, int]:
    return document_frequencies([references for _, references in entries])


def _is_large(entries: ReferenceEntries, need: CorpusStatistics) -> bool:
    if len(entries) > _OFF_LOOP_ENTRIES:
        return True
    characters = sum(len(text) for _, references in entries for text in references)
    if need.with_question:
        characters += sum(len(question) * len(references) for question, references in entries)
    return characters > _OFF_LOOP_CHARS


async def _at_once(work: Callable[[], T]) -> T:
    return work()
