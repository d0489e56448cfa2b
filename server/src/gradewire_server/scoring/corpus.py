"""Counts the corpora that weights of rare words are taken from: a request's references, or a prepared set's.

A prepared corpus is known by its digest. Digest and counts are remembered until the set grows, so that the next request
costs one look at the store; a call goes on with the corpus that it began with.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from copy import copy
from functools import partial
from typing import Final, TypeAlias, TypeVar

from gradewire_server.concurrency.single_flight import SingleFlight
from gradewire_server.domain.item import Item
from gradewire_server.domain.needs import Corpus, CorpusStatistics, DocumentFrequencies, ReferenceEntries, Terms
from gradewire_server.domain.ports import Ports
from gradewire_server.domain.result import Failure, Status
from gradewire_server.metrics.checks import check_references
from gradewire_server.metrics.overlap.cider_ngrams import document_frequencies
from gradewire_server.scoring.corpus_digests import CorpusDigests
from gradewire_server.scoring.corpus_entries import count_tokens, distinct_references, entry_of, name_of

MAX_REMEMBERED_TERMS: Final = 2_000_000
"""Terms of all remembered corpora together; about 250 bytes each. The one that was counted last stays in any case."""
_OFF_LOOP_ENTRIES: Final = 512
_OFF_LOOP_CHARS: Final = 8_000
"""Characters of a corpus above which it is counted on a thread: about 5 ms of work."""
T = TypeVar("T")
_Key: TypeAlias = tuple[str, str, CorpusStatistics]
"""Namespace, set, and what is counted."""

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


class Corpora:
    """The prepared corpora of a process, as one namespace sees them. Belongs to one event loop.

    Args:
        ports: Keep the sets and know the tokens of models.
    """

    _namespace = ""

    def __init__(self, ports: Ports) -> None:
        self._embeddings = ports.embeddings
        self._digests = CorpusDigests(ports.reference_sets)
        self._known: OrderedDict[_Key, tuple[str, DocumentFrequencies]] = OrderedDict()
        self._counting: SingleFlight[tuple[_Key, str], DocumentFrequencies | Failure] = SingleFlight()

    def within(self, ports: Ports, namespace: str) -> "Corpora":
        """Those of a tenant's namespace, of which `ports` are; what is remembered is bounded for all together."""
        view = copy(self)
        view._embeddings = ports.embeddings  # noqa: SLF001 - of the same class
        view._digests = self._digests.within(ports.reference_sets, namespace)  # noqa: SLF001 - as above
        view._namespace = namespace  # noqa: SLF001 - as above
        return view

    async def digest_of(self, reference_set: str) -> str | Failure:
        """32 hex digits over the entries of a prepared set as it is now; NOT_PREPARED where there is none."""
        return await self._digests.of_set(reference_set) if reference_set else _UNNAMED

    async def of_set(
        self, reference_set: str, need: CorpusStatistics, digest: str = ""
    ) -> DocumentFrequencies | Failure:
        """The frequencies in a prepared set; NOT_PREPARED where there is none.

        Args:
            reference_set: Name of the set.
            need: What is counted.
            digest: Of the corpus that is meant, as `digest_of` gave it; empty: the set as it is now.
        """
        if not reference_set:
            return _UNNAMED
        meant = digest or await self._digests.of_set(reference_set)
        if isinstance(meant, Failure):
            return meant
        key = (self._namespace, reference_set, need)
        known = self._known.get(key)
        if known is not None and known[0] == meant:
            self._known.move_to_end(key)
            return known[1]
        # The work belongs to the process: a request that gives up must not make the next one begin anew.
        return await self._counting.result((key, meant), partial(self._count_set, self._digests, key, meant))

    async def count(
        self, name: str, entries: ReferenceEntries, need: CorpusStatistics
    ) -> DocumentFrequencies | Failure:
        """Counts distinct entries, each as `entry_of` makes it; `name` as the first part of the result's."""
        # On a thread, where much of it does not keep the event loop from others.
        run = asyncio.to_thread if _is_large(entries, need) else _at_once
        if need.terms is Terms.NGRAMS:
            return await run(
                lambda: DocumentFrequencies(name_of(name, len(entries), entries), len(entries), _ngrams_of(entries))
            )
        with_question = need.with_question
        texts = await run(lambda: distinct_references(entries, with_question=with_question))
        if not texts:
            return _NO_QUESTION
        ids = await self._embeddings.token_ids(need.model, texts)
        if isinstance(ids, Failure):
            return ids
        documents = len(texts)
        return await run(
            lambda: DocumentFrequencies(
                name_of(name, documents, entries, with_question=with_question), documents, count_tokens(ids)
            )
        )

    async def _count_set(self, digests: CorpusDigests, key: _Key, digest: str) -> DocumentFrequencies | Failure:
        _, reference_set, need = key
        entries = await digests.entries(reference_set, digest)
        if isinstance(entries, Failure):
            return entries
        counted = await self.count(reference_set, entries, need)
        if isinstance(counted, DocumentFrequencies):
            self._remember(key, digest, counted)
        return counted

    def _remember(self, key: _Key, digest: str, counted: DocumentFrequencies) -> None:
        self._known[key] = digest, counted
        self._known.move_to_end(key)
        terms = sum(len(each.counts) for _, each in self._known.values())
        while terms > MAX_REMEMBERED_TERMS and len(self._known) > 1:
            _, (_, oldest) = self._known.popitem(last=False)
            terms -= len(oldest.counts)


class RequestCorpora:
    """The corpora that metrics of one request may ask for; each is counted once, however many items ask.

    Args:
        corpora: Of the process.
        items: All items of the request, the same whatever their order.
        reference_set: Of the request; empty without.
        digest: Of its corpus as it was when the call began; empty: as it is now.
    """

    def __init__(self, corpora: Corpora, items: Sequence[Item], *, reference_set: str, digest: str = "") -> None:
        self._corpora = corpora
        self._items = items
        self._reference_set = reference_set
        self._digest = digest
        self._lock = asyncio.Lock()
        self._found: dict[CorpusStatistics, DocumentFrequencies | Failure] = {}

    async def count(self, need: CorpusStatistics) -> DocumentFrequencies | Failure:
        """Answers a need."""
        if need.corpus is Corpus.PREPARED:
            return await self._corpora.of_set(self._reference_set, need, self._digest)
        async with self._lock:
            if need not in self._found:
                self._found[need] = await self._count(need)
            return self._found[need]

    async def _count(self, need: CorpusStatistics) -> DocumentFrequencies | Failure:
        entries = entries_of((item.question, item.references) for item in self._items)
        if not entries:
            return _EMPTY
        return await self._corpora.count(Corpus.REQUEST, entries, need)


def entries_of(pairs: Iterable[tuple[str, Sequence[str]]]) -> ReferenceEntries:
    """Distinct entries in their normal form and order; those that no metric would grade are left out."""
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
