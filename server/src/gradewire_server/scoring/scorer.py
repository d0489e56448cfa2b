"""The scorer, which grades items, remembers results, and prepares references."""

from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from sys import getsizeof
from typing import Any, Final, NamedTuple, TypeAlias

from gradewire_proto.choices import Corpus, GradedAnswer
from gradewire_proto.tracing.spans import ITEMS, METRICS, SCORE, spanned
from gradewire_server.domain.items import CacheHits, Failure, Item, MetricResult, ReferenceEntry, ScoredResult, Status
from gradewire_server.domain.metric import Metric, ModelMetadata, Parameters
from gradewire_server.domain.needs import Program
from gradewire_server.domain.ports import Ports, SharedValues
from gradewire_server.loop_turns import LoopSlice, LoopTurns
from gradewire_server.scoring.calls import Cost
from gradewire_server.scoring.corpus import Corpora, RequestCorpora
from gradewire_server.scoring.prepare import PreparedChunk, Preparer
from gradewire_server.scoring.program_runner import ProgramRunner
from gradewire_server.scoring.shared_results import decode_result, encode_result, recipe_digest, result_name
from gradewire_server.scoring.synthetic import WritingSettings

_MAX_CHARACTERS: Final = 4_096
"""The results of items with more characters are not remembered."""
_MAX_REQUESTS: Final = 1_024
ENTRY_BYTES: Final = 1_600
"""The maximum size of an entry without its texts."""
_NUMBER_BYTES: Final = 32
_TEXT_BYTES: Final = 24
"""The memory for a string in addition to its object."""
_ASCII_BYTES: Final = getsizeof("") + _TEXT_BYTES
_MAX_UTF8_BYTES_PER_CHARACTER: Final = 4

_LARGE_CHARACTERS: Final = 8_192
"""Metrics for items with more characters run on a thread. `correctness` takes up to 1 µs per character."""
_LARGE_COMPLETION: Final = 2_048
"""The same for metrics that first search a final answer, which takes 2 µs per character, of hostile texts 7 µs."""

RECALLED_AT_ONCE: Final = 64
"""The maximum number of results to look up without a pause. This takes less than a millisecond."""

_Key: TypeAlias = tuple[str, int, str, str, tuple[str, ...], tuple[str, ...], tuple[str, ...], tuple[str, ...], bool]

Emit: TypeAlias = Callable[[int, int, ScoredResult], None]
"""A callback with an item's index, a metric's index and the result."""

Emitted: TypeAlias = set[tuple[int, int]]
"""(item index, metric index) pairs."""


@dataclass(frozen=True, slots=True)
class MetricRequest:
    """A requested metric, with resolved parameters and its model's metadata."""

    metric: Metric[Any]
    parameters: Parameters
    metadata: ModelMetadata


class _Entry(NamedTuple):
    result: MetricResult
    texts: int
    size_bytes: int


class _Recipe(NamedTuple):
    """A request's number in this process, and its digest if processes share results."""

    number: int
    digest: bytes


class RememberedResults:
    """A least-recently-used cache of results, for one event loop.

    `found` counts the results found since the start, and `texts` counts the texts in these results.

    Args:
        max_bytes: Maximum size of the results in this process's memory. 0 means that no results are remembered.
        table: The memory in which processes share results, or None.
    """

    def __init__(self, max_bytes: int, table: SharedValues | None = None) -> None:
        self._max_bytes = max_bytes
        self.table = table
        self._entries: OrderedDict[_Key, _Entry] = OrderedDict()
        self._recipes: OrderedDict[int, tuple[MetricRequest, _Recipe]] = OrderedDict()
        self._last_number = 0
        self.used_bytes = 0
        self.found = 0
        self.texts = 0

    def of(self, request: MetricRequest, namespace: str = "") -> "ResultsOfMetric | None":
        """Return the metric's remembered results, or None if results of this metric are not remembered."""
        info, parameters = request.metric.info, request.parameters
        cheap = not (info.needs_model or info.needs_grader)
        if not self._max_bytes or cheap or info.asks_judge:
            return None
        if parameters.corpus is not Corpus.NONE or parameters.reads_prepared:
            return None
        return ResultsOfMetric(self, namespace, *self._recipe_of(request))

    def get(self, key: _Key) -> _Entry | None:
        """Return an entry, or None if the key is unknown."""
        entry = self._entries.get(key)
        if entry is not None:
            self._entries.move_to_end(key)
            self.used(entry)
        return entry

    def used(self, entry: _Entry) -> None:
        """Count a found entry."""
        self.found += 1
        self.texts += entry.texts

    def put(self, key: _Key, entry: _Entry) -> None:
        """Store an entry. If the cache is full, drop the least recently used entries."""
        known = self._entries.pop(key, None)
        self.used_bytes += entry.size_bytes - (known.size_bytes if known else 0)
        self._entries[key] = entry
        while self.used_bytes > self._max_bytes:
            _, oldest = self._entries.popitem(last=False)
            self.used_bytes -= oldest.size_bytes

    def _recipe_of(self, request: MetricRequest) -> _Recipe:
        # The planner returns the same object for equal requests.
        known = self._recipes.get(id(request))
        if known is not None:
            self._recipes.move_to_end(id(request))
            return known[1]
        self._last_number += 1
        info = request.metric.info
        shared = () if self.table is None else (info.name, info.version, request.parameters, request.metadata)
        recipe = _Recipe(self._last_number, recipe_digest(*shared) if shared else b"")
        self._recipes[id(request)] = request, recipe  # keep the object, so that `id` remains unique
        if len(self._recipes) > _MAX_REQUESTS:
            self._recipes.popitem(last=False)
        return recipe


class ResultsOfMetric(NamedTuple):
    """The remembered results of a metric (with parameters) in one namespace."""

    results: RememberedResults
    namespace: str
    number: int
    digest: bytes

    def find(self, item: Item) -> ScoredResult | None:
        """Return the remembered result for the item's texts, or None if there is no such result."""
        key = self._key(item)
        entry = self.results.get(key) or self._find_shared(key, item)
        return None if entry is None else ScoredResult(entry.result, CacheHits(memory=entry.texts))

    def keep(self, item: Item, result: MetricResult, cost: Cost) -> None:
        """Remember a result, unless the result is a failure or the item is long or has images."""
        if result.status is not Status.OK or not _is_rememberable(item):
            return
        self._put(self._key(item), result, cost.cache_hits.total)
        if (table := self.results.table) is not None:
            value = encode_result(result, cost.cache_hits.total)
            table.put(result_name(self.digest, self.namespace, item), value, pinned=False)

    def _find_shared(self, key: _Key, item: Item) -> _Entry | None:
        table = self.results.table
        if table is None or not _is_rememberable(item):
            return None
        found = table.get(result_name(self.digest, self.namespace, item))
        if found is None:
            return None
        entry = self._put(key, *decode_result(found.value))
        self.results.used(entry)
        return entry

    def _put(self, key: _Key, result: MetricResult, texts: int) -> _Entry:
        size_bytes = ENTRY_BYTES + sum(map(_text_bytes, _texts_of(key))) + _parts_bytes(result)
        entry = _Entry(result, texts, size_bytes)
        self.results.put(key, entry)
        return entry

    def _key(self, item: Item) -> _Key:
        return (
            self.namespace,
            self.number,
            item.question,
            item.prediction,
            item.references,
            item.synthetic_answers,
            item.captions,
            item.choices,
            item.answerable,
        )


def _is_rememberable(item: Item) -> bool:
    """Return True unless the item is long or has images."""
    return not item.images and item.characters + sum(map(len, item.captions)) <= _MAX_CHARACTERS


def _texts_of(key: _Key) -> tuple[str, ...]:
    return (*key[2:4], *key[4], *key[5], *key[6], *key[7])


def _text_bytes(text: str) -> int:
    if text.isascii():
        return len(text) + _ASCII_BYTES
    # Python may keep a UTF-8 copy of the string.
    return getsizeof(text) + _TEXT_BYTES + _MAX_UTF8_BYTES_PER_CHARACTER * len(text)


def _parts_bytes(result: MetricResult) -> int:
    # All results share the mappings' keys.
    parts = result.parts
    values = [getattr(parts, name) for name in type(parts).__slots__] if parts else []
    values = [value for value in values if value is not None and not isinstance(value, float | int)]
    mappings = sum(getsizeof(value) + len(value) * _NUMBER_BYTES for value in values if isinstance(value, Mapping))
    return mappings + sum(_text_bytes(value) for value in values if isinstance(value, str))


class Scorer:
    """A scorer that uses the server's ports. Calls may run concurrently."""

    def __init__(
        self,
        ports: Ports,
        corpora: Corpora | None = None,
        turns: LoopTurns | None = None,
        results: RememberedResults | None = None,
        namespace: str = "",
    ) -> None:
        self._ports = ports
        self._corpora = corpora or Corpora(ports)
        self._turns = turns or LoopTurns()
        self._results = results or RememberedResults(0)
        self._namespace = namespace

    def within(self, ports: Ports, namespace: str) -> "Scorer":
        """Return a scorer for a tenant's namespace. All scorers share the cache of results."""
        return Scorer(ports, self._corpora.within(ports, namespace), self._turns, self._results, namespace)

    async def score(  # noqa: PLR0913 - items, metrics, the callback, and four optional arguments
        self,
        items: Sequence[Item],
        requests: Sequence[MetricRequest | Failure],
        *,
        deadline_s: float | None = None,
        judge_deadline_s: float | None = None,
        corpora: RequestCorpora | None = None,
        emitted: Emitted | None = None,
        emit: Emit,
    ) -> None:
        """Grade every item with every metric, and emit each result exactly once, in any order.

        Cancelling this call also cancels the port calls.

        Args:
            items: The items to grade.
            requests: The metrics. A Failure becomes the metric's result for all items.
            deadline_s: The time at which missing results become TIMEOUT, in `time.monotonic()` seconds.
            judge_deadline_s: The deadline for judges. None means `deadline_s`.
            corpora: The request's corpora. None means the corpora of `items`, without a reference set.
            emitted: The return value of `recall`, or None if `recall` was not called.
            emit: A callback for each result. It must not block.
        """
        await LoopSlice(self._turns).begin()
        remembered = self._remembered(requests)

        def done(key: tuple[int, int], result: MetricResult | Failure, cost: Cost) -> None:
            if isinstance(result, Failure):
                result = MetricResult.failed(result)
            item_index, metric_index = key
            if (results := remembered.get(metric_index)) is not None:
                results.keep(items[item_index], result, cost)
            emit(item_index, metric_index, ScoredResult(result, cost.cache_hits, cost.timing))

        for metric_index, request in enumerate(requests):
            if isinstance(request, Failure):
                failed = ScoredResult(MetricResult.failed(request))
                for item_index in range(len(items)):
                    emit(item_index, metric_index, failed)
        corpora = corpora or self.corpora_of(items)
        runner = ProgramRunner(
            self._ports,
            done,
            reference_set=corpora.reference_set,
            deadline_s=deadline_s,
            judge_deadline_s=judge_deadline_s,
            count_corpus=corpora.count,
            turns=self._turns,
        )
        names = [each.metric.info.name for each in requests if isinstance(each, MetricRequest)]
        with spanned(SCORE, {ITEMS: len(items), METRICS: names}):
            if emitted is None:
                emitted = await self._recall_in_slices(items, requests, emit)
            await runner.run(
                _programs(items, requests, emitted),
                judged=_programs(items, requests, emitted, judged=True),
                is_large=_large_of(items, requests),
            )

    def recall(self, items: Sequence[Item], requests: Sequence[MetricRequest | Failure], *, emit: Emit) -> Emitted:
        """Emit all remembered results and return their indices. Pass at most RECALLED_AT_ONCE (item, request) pairs."""
        if not (mine := self._remembered(requests)):
            return set()
        return {pair for index, item in enumerate(items) for pair in _recalled(mine, index, item, emit)}

    async def _recall_in_slices(
        self, items: Sequence[Item], requests: Sequence[MetricRequest | Failure], emit: Emit
    ) -> Emitted:
        emitted: Emitted = set()
        if mine := self._remembered(requests):
            part = LoopSlice(self._turns)
            for index, item in enumerate(items):
                emitted.update(_recalled(mine, index, item, emit))
                await part.give_way()
        return emitted

    def _remembered(self, requests: Sequence[MetricRequest | Failure]) -> dict[int, ResultsOfMetric]:
        found = ((index, each) for index, each in enumerate(requests) if isinstance(each, MetricRequest))
        return {index: results for index, each in found if (results := self._results.of(each, self._namespace))}

    def corpora_of(self, items: Sequence[Item], *, reference_set: str = "", corpus_digest: str = "") -> RequestCorpora:
        """Return a request's corpora. `items` must be all items in the request.

        If `corpus_digest` is "", use the set's current corpus.
        """
        return RequestCorpora(self._corpora, items, reference_set=reference_set, digest=corpus_digest)

    async def corpus_digest(self, reference_set: str) -> str | Failure:
        """Return the digest (32 hex digits) of a set's current corpus, or NOT_PREPARED if the set has no corpus."""
        return await self._corpora.digest_of(reference_set)

    def prepare(  # noqa: PLR0913 - entries, metrics, the set, and three optional arguments
        self,
        entries: Sequence[ReferenceEntry],
        requests: Sequence[MetricRequest | Failure],
        *,
        reference_set: str,
        deadline_s: float | None = None,
        writing: WritingSettings | None = None,
        seal: str = "",
    ) -> AsyncGenerator[PreparedChunk]:
        """Store entries and synthetic answers durably, fill the cache for `score`, and yield progress.

        Args:
            entries: The entries to prepare.
            requests: The metrics. A Failure becomes the failure of all entries.
            reference_set: The set's name.
            deadline_s: The deadline in `time.monotonic()` seconds.
            writing: Settings for the generation of missing synthetic answers.
            seal: The set's seal, or "" if the set is not sealed.
        """
        metrics = [r if isinstance(r, Failure) else (r.metric, r.parameters) for r in requests]
        preparer = Preparer(
            self._ports, metrics, reference_set=reference_set, deadline_s=deadline_s, writing=writing, seal=seal
        )
        return preparer.run(entries)


def _large_of(items: Sequence[Item], requests: Sequence[MetricRequest | Failure]) -> Callable[[tuple[int, int]], bool]:
    """Return a function that tells whether a program, (item index, metric index), runs on a thread."""
    finding = {
        index
        for index, request in enumerate(requests)
        if isinstance(request, MetricRequest) and getattr(request.parameters, "answer", None) is GradedAnswer.FINAL
    }
    characters = [item.characters for item in items]

    def is_large(key: tuple[int, int]) -> bool:
        item, metric = key
        return characters[item] > (_LARGE_COMPLETION if metric in finding else _LARGE_CHARACTERS)

    return is_large


def _recalled(
    results: Mapping[int, ResultsOfMetric], item_index: int, item: Item, emit: Emit
) -> Iterator[tuple[int, int]]:
    """Emit an item's remembered results, and yield their indices."""
    for metric_index, of_metric in results.items():
        if (scored := of_metric.find(item)) is not None:
            emit(item_index, metric_index, scored)
            yield item_index, metric_index


def _programs(
    items: Sequence[Item],
    requests: Sequence[MetricRequest | Failure],
    emitted: Emitted,
    *,
    judged: bool = False,
) -> Iterator[tuple[tuple[int, int], Program]]:
    mine = [
        (metric_index, request)
        for metric_index, request in enumerate(requests)
        if isinstance(request, MetricRequest) and request.metric.info.needs_judge == judged
    ]
    if not mine:
        return
    for item_index, item in enumerate(items):
        for metric_index, request in mine:
            if (item_index, metric_index) not in emitted:
                yield (item_index, metric_index), request.metric.score(item, request.parameters, request.metadata)
