"""The scorer: items by metrics, results remembered from before, and references made ready."""

from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from sys import getsizeof
from typing import Any, Final, NamedTuple, TypeAlias

from gradewire_proto.choices import Corpus
from gradewire_proto.tracing.spans import ITEMS, METRICS, SCORE, spanned
from gradewire_server.domain.items import CacheHits, Failure, Item, MetricResult, ReferenceEntry, ScoredResult, Status
from gradewire_server.domain.metric import Metric, ModelMetadata, Parameters
from gradewire_server.domain.needs import Program
from gradewire_server.domain.ports import Ports
from gradewire_server.scoring.calls import Cost
from gradewire_server.scoring.corpus import Corpora, RequestCorpora
from gradewire_server.scoring.prepare import PreparedChunk, Preparer
from gradewire_server.scoring.program_runner import LoopSlice, LoopTurns, ProgramRunner
from gradewire_server.scoring.synthetic import WritingSettings

_MAX_CHARACTERS: Final = 4_096
"""Characters of an item: a longer one is rarely met again, and would push many short ones out."""
_MAX_REQUESTS: Final = 1_024
"""Metrics with their parameters whose results can be found; those used last."""
ENTRY_BYTES: Final = 1_600
"""Bytes of an entry beside its texts, at its worst; a test traces it."""
_NUMBER_BYTES: Final = 32
_TEXT_BYTES: Final = 24
"""Bytes of a text beside its own object: its place in a tuple, and what the allocator rounds up."""
_MAX_UTF8_BYTES_PER_CHARACTER: Final = 4

_LARGE_CHARACTERS: Final = 8_192
"""Characters of an item: metrics that read words take up to 0.4 µs for each of them, `correctness` up to 1 µs."""

RECALLED_AT_ONCE: Final = 64
"""Results that are looked up without a turn of the event loop: less than a millisecond."""

_Key: TypeAlias = tuple[str, int, str, str, tuple[str, ...], tuple[str, ...], tuple[str, ...]]

Emit: TypeAlias = Callable[[int, int, ScoredResult], None]
"""Called with each result when it is done: item index, metric index, result."""

Emitted: TypeAlias = set[tuple[int, int]]
"""Item and metric indices of results that were emitted."""


@dataclass(frozen=True, slots=True)
class MetricRequest:
    """A metric of a request, ready to run; without a model its metadata is empty."""

    metric: Metric[Any]
    parameters: Parameters
    metadata: ModelMetadata


class _Entry(NamedTuple):
    result: MetricResult
    texts: int
    size_bytes: int


class RememberedResults:
    """The results of a process; least recently used ones go. Belongs to one event loop.

    Attributes:
        used_bytes: Bytes accounted for, of all namespaces together.
        found: Results that were found, since the start and in all namespaces.
        texts: Texts of the results that were found: those that an encoder's cache was not asked for.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._entries: OrderedDict[_Key, _Entry] = OrderedDict()
        self._numbers: OrderedDict[int, tuple[MetricRequest, int]] = OrderedDict()
        self._last_number = 0
        self.used_bytes = 0
        self.found = 0
        self.texts = 0

    def of(self, request: MetricRequest, namespace: str = "") -> "ResultsOfMetric | None":
        """Return the results of a metric with its parameters; None where they rest on more than an item's texts."""
        info, parameters = request.metric.info, request.parameters
        cheap = not (info.needs_model or info.needs_grader)  # looking up costs as much as such a metric
        if not self._max_bytes or cheap or info.asks_judge:
            return None
        if parameters.corpus is not Corpus.NONE or parameters.reads_prepared:
            return None
        return ResultsOfMetric(self, namespace, self._number_of(request))

    def get(self, key: _Key) -> _Entry | None:
        """Return an entry, which becomes the one used last."""
        entry = self._entries.get(key)
        if entry is not None:
            self._entries.move_to_end(key)
            self.found += 1
            self.texts += entry.texts
        return entry

    def put(self, key: _Key, entry: _Entry) -> None:
        """Keep an entry; those used least recently make room."""
        known = self._entries.pop(key, None)
        self.used_bytes += entry.size_bytes - (known.size_bytes if known else 0)
        self._entries[key] = entry
        while self.used_bytes > self._max_bytes:
            _, oldest = self._entries.popitem(last=False)
            self.used_bytes -= oldest.size_bytes

    def _number_of(self, request: MetricRequest) -> int:
        """Stands for this very object, which the planner keeps; comparing all its parameters would cost more."""
        known = self._numbers.get(id(request))
        if known is not None:
            self._numbers.move_to_end(id(request))
            return known[1]
        self._last_number += 1
        self._numbers[id(request)] = request, self._last_number  # held, so that no other object can get its id
        if len(self._numbers) > _MAX_REQUESTS:
            self._numbers.popitem(last=False)  # its entries are found by nobody and go as the oldest
        return self._last_number


class ResultsOfMetric(NamedTuple):
    """The remembered results of one metric with its parameters, in one namespace."""

    results: RememberedResults
    namespace: str
    number: int

    def find(self, item: Item) -> ScoredResult | None:
        """Return the result of an item with the same texts; all its texts count as answered from memory."""
        entry = self.results.get(self._key(item))
        return None if entry is None else ScoredResult(entry.result, CacheHits(memory=entry.texts))

    def keep(self, item: Item, result: MetricResult, cost: Cost) -> None:
        """Remember a result, unless it failed or its item is long or has pictures."""
        if result.status is not Status.OK or item.images:
            return
        # Encoders read no caption, so the item does not count them among its characters.
        if item.characters + sum(map(len, item.captions)) > _MAX_CHARACTERS:
            return
        key = self._key(item)
        size_bytes = ENTRY_BYTES + sum(map(_text_bytes, _texts_of(key))) + _parts_bytes(result)
        self.results.put(key, _Entry(result, cost.cache_hits.total, size_bytes))

    def _key(self, item: Item) -> _Key:
        return (
            self.namespace,
            self.number,
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
    """Return the bytes of texts and mappings among a result's parts; all results share the names in mappings."""
    parts = result.parts
    values = [getattr(parts, name) for name in type(parts).__slots__] if parts else []
    mappings = sum(getsizeof(value) + len(value) * _NUMBER_BYTES for value in values if isinstance(value, Mapping))
    return mappings + sum(_text_bytes(value) for value in values if isinstance(value, str))


class Scorer:
    """Runs metrics over the server's ports; holds no state of a request, so any number may be scored at once."""

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
        """Return a scorer over the ports of a tenant's namespace; what is remembered has one bound for all."""
        return Scorer(ports, self._corpora.within(ports, namespace), self._turns, self._results, namespace)

    async def score(  # noqa: PLR0913 - what to score and where results go, and four things that have defaults
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
        """Grade every item with every metric; return when all results are emitted.

        Each (item, metric) pair is emitted exactly once, in no particular order, and fails alone. Cancelling the call
        cancels what it asked of the ports; what was emitted before stands. A request that is a Failure becomes the
        result of all items at its place.

        Args:
            items: Answers to grade.
            requests: Metrics or failures.
            deadline_s: In `time.monotonic()` seconds; what is not computed by then ends with TIMEOUT.
            judge_deadline_s: Deadline of judges; None: the same.
            corpora: Of the request, which name the set of prepared synthetic answers; None: of these items, no set.
            emitted: What `recall` has emitted; None: it was not asked.
            emit: Called with each result; must not block.
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
                is_large=_large_of(items),
            )

    def recall(self, items: Sequence[Item], requests: Sequence[MetricRequest | Failure], *, emit: Emit) -> Emitted:
        """Emit and return what is remembered of a few items, without a turn of the loop; the rest is `score`'s.

        Items are looked up at once, so that at most RECALLED_AT_ONCE results should be asked.
        """
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
        """By metric index, where results can be remembered."""
        found = ((index, each) for index, each in enumerate(requests) if isinstance(each, MetricRequest))
        return {index: results for index, each in found if (results := self._results.of(each, self._namespace))}

    def corpora_of(self, items: Sequence[Item], *, reference_set: str = "", corpus_digest: str = "") -> RequestCorpora:
        """Return the corpora of a request whose items may be scored in several parts.

        `corpus_digest` is of the prepared corpus that is meant, as that method gave it; empty: as it is now.
        """
        return RequestCorpora(self._corpora, items, reference_set=reference_set, digest=corpus_digest)

    async def corpus_digest(self, reference_set: str) -> str | Failure:
        """32 hex digits over the corpus of a prepared set as it is now; NOT_PREPARED where it has none."""
        return await self._corpora.digest_of(reference_set)

    def prepare(  # noqa: PLR0913 - what to prepare and where, and three things that have defaults
        self,
        entries: Sequence[ReferenceEntry],
        requests: Sequence[MetricRequest | Failure],
        *,
        reference_set: str,
        deadline_s: float | None = None,
        writing: WritingSettings | None = None,
        seal: str = "",
    ) -> AsyncGenerator[PreparedChunk]:
        """Stores synthetic answers and a corpus durably, and asks for all that `score` will need of the references.

        Has a judge write the synthetic answers that are missing, where `writing` says how. Yields progress after each
        chunk of entries, and within one as the judge writes; what was done stays done when the caller stops. The same
        content again computes nothing. A set that was sealed gets a corpus whatever the metrics, and no other entries.
        """
        metrics = [r if isinstance(r, Failure) else (r.metric, r.parameters) for r in requests]
        preparer = Preparer(
            self._ports, metrics, reference_set=reference_set, deadline_s=deadline_s, writing=writing, seal=seal
        )
        return preparer.run(entries)


def _large_of(items: Sequence[Item]) -> Callable[[tuple[int, int]], bool]:
    """Tells programs whose item has so much text that one round of a metric could keep others waiting."""
    large = {index for index, item in enumerate(items) if item.characters > _LARGE_CHARACTERS}
    return lambda key: key[0] in large


def _recalled(
    results: Mapping[int, ResultsOfMetric], item_index: int, item: Item, emit: Emit
) -> Iterator[tuple[int, int]]:
    """Emits what is remembered of an item; yields its index and the metric's."""
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
