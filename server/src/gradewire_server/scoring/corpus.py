"""The corpora of requests and reference sets: their entries, digests and document frequencies."""

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

_MAX_REMEMBERED_DIGESTS: Final = 4096
_MAX_HELD_ENTRIES: Final = 20_000
_MAX_HELD_CHARACTERS: Final = 8_000_000
"""A corpus with more characters (20 MB) does not stay in memory after its digest is computed."""
_OFF_LOOP_ENTRIES: Final = 512

MAX_REMEMBERED_TERMS: Final = 2_000_000
"""The maximum number of terms in all remembered document frequencies (about 250 bytes per term)."""
_OFF_LOOP_CHARS: Final = 8_000
"""Corpora with more characters are counted on a thread, because counting takes more than 5 ms."""
T = TypeVar("T")

_UNNAMED: Final = Failure(
    Status.NOT_PREPARED,
    "reference_set: is missing; prepare a corpus (References.Prepare or `gradewire prepare FILE`, with this metric), "
    "and set reference_set to its name",
)
_EMPTY: Final = Failure(
    Status.INVALID_INPUT, "references: at least one item must have valid references, which form the corpus"
)
_NO_QUESTION: Final = Failure(
    Status.NOT_PREPARED,
    "reference_set: no entry in the set has a question, but this metric needs questions; prepare the set again with "
    "questions (References.Prepare or `gradewire prepare FILE`, with this metric)",
)

_Name: TypeAlias = tuple[str, str]
"""A namespace, and the name of a reference set."""

_Key: TypeAlias = tuple[str, str, CorpusStatistics]


def entry_of(question: str, references: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Return a question and its distinct references, sorted."""
    return question, tuple(sorted(set(references)))


def distinct_references(entries: ReferenceEntries, *, with_question: bool = False) -> list[str]:
    """Return the distinct references, sorted.

    If `with_question` is True, put the question before each reference, and omit references without a question.
    """
    if not with_question:
        return sorted({text for _, references in entries for text in references})
    asked = [(question, references) for question, references in entries if check_question(question) is None]
    return sorted({behind_question(question, text) for question, references in asked for text in references})


def name_of(name: str, documents: int, entries: ReferenceEntries, *, with_question: bool = False) -> str:
    """Return NAME:DOCUMENTS:DIGEST, where DIGEST is a hash of the distinct entries, 12 hex digits.

    The digest depends on `with_question`, but not on the entries' order.
    """
    state = blake2b(digest_size=_DIGEST_BYTES, person=_WITH_QUESTION if with_question else b"")
    for question, references in sorted(entries):
        for text in (str(len(references)), question, *references):
            encoded = text.encode()
            state.update(len(encoded).to_bytes(8, "big") + encoded)
    return f"{name}:{documents}:{state.hexdigest()}"


def count_tokens(ids: Sequence[NDArray[np.int32]]) -> dict[Hashable, int]:
    """Return the number of texts that contain each token ID. `ids` has an array of non-negative IDs for each text."""
    if not ids:
        return {}
    texts = np.repeat(np.arange(len(ids), dtype=np.int64), [len(each) for each in ids])
    occurrences = np.unique((texts << 32) | np.concatenate(ids).astype(np.int64))
    numbers, counts = np.unique(occurrences & 0xFFFFFFFF, return_counts=True)
    return dict(zip(numbers.tolist(), counts.tolist(), strict=True))


async def digest_of(entries: ReferenceEntries) -> str:
    """Return 32 hex digits, a hash of the distinct normalised entries. The order of the entries does not matter."""
    if len(entries) > _OFF_LOOP_ENTRIES:
        return await asyncio.to_thread(_digest, entries)
    return _digest(entries)


def _digest(entries: ReferenceEntries) -> str:
    return corpus_digest(entry_name(entry_payload(question, references)) for question, references in entries)


def _characters(entries: ReferenceEntries) -> int:
    return sum(len(question) + sum(map(len, references)) for question, references in entries)


class Corpora:
    """The prepared corpora in one namespace, for one event loop."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._namespace = ""
        self._digests: OrderedDict[_Name, tuple[str, str]] = OrderedDict()
        self._reading: SingleFlight[tuple[_Name, str], str | Failure] = SingleFlight()
        self._held: dict[tuple[_Name, str], ReferenceEntries] = {}
        self._counted: OrderedDict[_Key, tuple[str, DocumentFrequencies]] = OrderedDict()
        self._counting: SingleFlight[tuple[_Key, str], DocumentFrequencies | Failure] = SingleFlight()

    def within(self, ports: Ports, namespace: str) -> "Corpora":
        """Return the corpora in a tenant's namespace. All namespaces share the memory limits."""
        view = copy(self)
        view._ports, view._namespace = ports, namespace  # noqa: SLF001 - the same class
        return view

    async def digest_of(self, reference_set: str) -> str | Failure:
        """Return the digest of a set's corpus, 32 hex digits, or NOT_PREPARED if the set is empty or incomplete."""
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
        """Return the document frequencies of a set's corpus. If `digest` is "", use the current corpus."""
        wanted = digest or await self.digest_of(reference_set)
        if isinstance(wanted, Failure):
            return wanted
        key = (self._namespace, reference_set, need)
        known = self._counted.get(key)
        if known is not None and known[0] == wanted:
            self._counted.move_to_end(key)
            return known[1]
        # If this request is cancelled, counting continues for the next request.
        return await self._counting.result((key, wanted), partial(self._count_set, key, wanted))

    async def count(
        self, name: str, entries: ReferenceEntries, need: CorpusStatistics
    ) -> DocumentFrequencies | Failure:
        """Return the document frequencies of distinct entries (see `entry_of`). For `name`, see `name_of`."""
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
        # `revision` may be older than the entries. The next request then reads the set again.
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
                f"reference_set: the corpus of {quoted(reference_set)} must have the digest {seal}, but so far it has "
                f"{len(entries)} entries and the digest {digest}; prepare the missing entries",
            )
        self._held.clear()
        if len(entries) <= _MAX_HELD_ENTRIES and _characters(entries) <= _MAX_HELD_CHARACTERS:
            self._held[name, digest] = entries
        self._digests[name] = revision, digest
        self._digests.move_to_end(name)
        if len(self._digests) > _MAX_REMEMBERED_DIGESTS:
            self._digests.popitem(last=False)
        return digest

    async def _entries(self, name: _Name, digest: str) -> ReferenceEntries | Failure:
        """Return the corpus's entries, or UNAVAILABLE if the corpus no longer has this digest."""
        held = self._held.get((name, digest))
        if held is not None:
            return held
        entries = await self._ports.reference_sets.entries(name[1])
        if isinstance(entries, Failure) or (now := await digest_of(entries)) == digest:
            return entries
        return Failure(
            Status.UNAVAILABLE,
            f"reference_set: the corpus of {quoted(name[1])} changed during this call, from digest {digest} to {now}; "
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
    """The corpora that a request's metrics may need. Each corpus is counted once for all items.

    Attributes:
        items: All items of the request, in any order.
        digest: The digest of the set's corpus at the start of the call. "" means the current corpus.
    """

    corpora: Corpora
    items: Sequence[Item]
    reference_set: str = ""
    digest: str = ""
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _found: dict[CorpusStatistics, DocumentFrequencies | Failure] = field(default_factory=dict)

    async def count(self, need: CorpusStatistics) -> DocumentFrequencies | Failure:
        """Return the document frequencies for `need`, or a failure."""
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
    """Return the distinct entries, normalised and sorted. Omit entries without references or with a blank reference."""
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
