"""Results of items that were scored before: the same texts under the same metric need no formula again.

A result is a function of the item's texts, the metric's resolved parameters and the digest of its model, so what is
remembered is what would be computed. What else a score may rest on (a judge, a corpus, a prepared set, a picture) is
never remembered, nor is anything that failed.
"""

from collections import OrderedDict
from collections.abc import Mapping
from copy import copy
from sys import getsizeof
from typing import Final, NamedTuple, TypeAlias

from gradewire_server.domain.item import Item
from gradewire_server.domain.needs import Corpus
from gradewire_server.domain.result import CacheHits, MetricResult, ScoredResult, Status
from gradewire_server.scoring.metric_request import MetricRequest
from gradewire_server.scoring.program_run import Cost

_MAX_CHARACTERS: Final = 4_096
"""Of an item: a longer one is rarely met again, and would push many short ones out."""
_MAX_REQUESTS: Final = 1_024
"""Metrics with their parameters whose results can be found; those used last."""
ENTRY_BYTES: Final = 1_600
"""What an entry takes beside its texts, at its worst; a test traces it."""
_NUMBER_BYTES: Final = 32
_TEXT_BYTES: Final = 24
"""Of a text beside its own object: its place in a tuple, and what the allocator rounds up."""
_MAX_UTF8_BYTES_PER_CHARACTER: Final = 4

_Key: TypeAlias = tuple[str, int, str, str, tuple[str, ...], tuple[str, ...], tuple[str, ...]]


class _Entry(NamedTuple):
    result: MetricResult
    texts: int
    size_bytes: int


class RememberedResults:
    """The results of a process, as one namespace sees them; least recently used ones go. Belongs to one event loop.

    Args:
        max_bytes: Of all namespaces together; 0: nothing is remembered.
    """

    _namespace = ""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._store = _Store()

    def within(self, namespace: str) -> "RememberedResults":
        """The same for a tenant's namespace: others' results are not found. The bound is shared."""
        view = copy(self)
        view._namespace = namespace  # noqa: SLF001 - a view of ours
        return view

    @property
    def used_bytes(self) -> int:
        """Bytes accounted for, at most `max_bytes`."""
        return self._store.used_bytes

    @property
    def found(self) -> int:
        """Results that were found, since the start and in all namespaces."""
        return self._store.found

    @property
    def texts(self) -> int:
        """Texts of the results that were found: those that an encoder's cache was not asked for."""
        return self._store.texts

    def of(self, request: MetricRequest) -> "ResultsOfMetric | None":
        """The results of a metric with its parameters; None where they rest on more than an item's texts."""
        info, parameters = request.metric.info, request.parameters
        cheap = not (info.needs_model or info.needs_grader)  # looking up costs as much as such a metric
        if not self._max_bytes or cheap or info.asks_judge:
            return None
        if parameters.corpus is not Corpus.NONE or parameters.reads_prepared:
            return None
        return ResultsOfMetric(self._store, self._namespace, self._store.number_of(request), self._max_bytes)


class _Store:
    """Entries by key, and the numbers that stand for metrics in keys."""

    def __init__(self) -> None:
        self.entries: OrderedDict[_Key, _Entry] = OrderedDict()
        self.used_bytes = 0
        self.found = 0
        self.texts = 0
        self._numbers: OrderedDict[int, tuple[MetricRequest, int]] = OrderedDict()
        self._next = 0

    def number_of(self, request: MetricRequest) -> int:
        """Stands for this very object, which the planner keeps; comparing all its parameters would cost more."""
        known = self._numbers.get(id(request))
        if known is not None:
            self._numbers.move_to_end(id(request))
            return known[1]
        self._next += 1
        self._numbers[id(request)] = request, self._next  # held, so that no other object can get its id
        if len(self._numbers) > _MAX_REQUESTS:
            self._numbers.popitem(last=False)  # its entries are found by nobody and go as the oldest
        return self._next


class ResultsOfMetric:
    """What is remembered of one metric with its parameters, in one namespace."""

    __slots__ = ("_max_bytes", "_namespace", "_number", "_store")

    def __init__(self, store: _Store, namespace: str, number: int, max_bytes: int) -> None:
        self._store = store
        self._namespace = namespace
        self._number = number
        self._max_bytes = max_bytes

    def find(self, item: Item) -> ScoredResult | None:
        """The result of an item with the same texts; all its texts count as answered from memory."""
        key = self._key(item)
        entry = self._store.entries.get(key)
        if entry is None:
            return None
        self._store.entries.move_to_end(key)
        self._store.found += 1
        self._store.texts += entry.texts
        return ScoredResult(entry.result, CacheHits(memory=entry.texts))

    def keep(self, item: Item, result: MetricResult, cost: Cost) -> None:
        """Remembers a result, unless it failed or its item is long or has pictures."""
        if result.status is not Status.OK or item.images:
            return
        # Encoders read no caption, so the item does not count them among its characters.
        if item.characters + sum(map(len, item.captions)) > _MAX_CHARACTERS:
            return
        store, key = self._store, self._key(item)
        size_bytes = ENTRY_BYTES + sum(map(_text_bytes, _texts_of(key))) + _parts_bytes(result)
        known = store.entries.pop(key, None)
        store.used_bytes += size_bytes - (known.size_bytes if known else 0)
        store.entries[key] = _Entry(result, cost.cache_hits.total, size_bytes)
        while store.used_bytes > self._max_bytes:
            _, oldest = store.entries.popitem(last=False)
            store.used_bytes -= oldest.size_bytes

    def _key(self, item: Item) -> _Key:
        return (
            self._namespace,
            self._number,
            item.question,
            item.prediction,
            item.references,
            item.synthetic_answers,
            item.captions,
        )


def _texts_of(key: _Key) -> tuple[str, ...]:
    return (*key[2:4], *key[4], *key[5], *key[6])


def _text_bytes(text: str) -> int:
    """With the copy in UTF-8 that Python keeps beside a text once it was encoded, which may be after it was counted."""
    return getsizeof(text) + _TEXT_BYTES + (0 if text.isascii() else _MAX_UTF8_BYTES_PER_CHARACTER * len(text))


def _parts_bytes(result: MetricResult) -> int:
    """Of the texts among a result's parts, and of the mappings, each with a number by a name that all results share."""
    parts = result.parts
    values = [getattr(parts, name) for name in type(parts).__slots__] if parts else []
    mappings = sum(getsizeof(value) + len(value) * _NUMBER_BYTES for value in values if isinstance(value, Mapping))
    return mappings + sum(_text_bytes(value) for value in values if isinstance(value, str))
