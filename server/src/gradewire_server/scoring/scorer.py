"""Scores items with metrics, and gets references ready: what requests ask of metrics and backends."""

from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from gradewire_proto.conventions.spans import spanned
from gradewire_proto.conventions.telemetry_names import ITEMS, METRICS, SCORE
from gradewire_server.domain.item import Item, ReferenceEntry
from gradewire_server.domain.needs import Program
from gradewire_server.domain.ports import Ports
from gradewire_server.domain.result import Failure, MetricResult, ScoredResult
from gradewire_server.scoring.corpus import Corpora, RequestCorpora
from gradewire_server.scoring.loop_turns import LoopSlice, LoopTurns
from gradewire_server.scoring.metric_request import MetricRequest
from gradewire_server.scoring.prepare import PreparedChunk, Preparer
from gradewire_server.scoring.program_run import Cost
from gradewire_server.scoring.program_runner import ProgramRunner
from gradewire_server.scoring.remembered import RememberedResults, ResultsOfMetric
from gradewire_server.scoring.synthetic.sentence import Writing

_LARGE_CHARACTERS: Final = 8_192
"""Of an item: metrics that read words take up to 0.4 µs for each of them, `correctness` up to 1 µs."""

Emit: TypeAlias = Callable[[int, int, ScoredResult], None]
"""Called with each result when it is done: item index, metric index, result."""

Told: TypeAlias = set[tuple[int, int]]
"""Item and metric indices of results that were emitted."""
RECALLED_AT_ONCE: Final = 64
"""Results that are looked up without a turn of the event loop: less than a millisecond."""


class Scorer:
    """Runs metrics over the server's ports; holds no state of a request, so any number may be scored at once.

    Args:
        ports: Answer what metrics need.
        corpora: The prepared corpora behind these ports; None: made here.
        turns: Of bulk work on the event loop; None: made here.
        results: Remembered ones; None: none are.
    """

    def __init__(
        self,
        ports: Ports,
        corpora: Corpora | None = None,
        turns: LoopTurns | None = None,
        results: RememberedResults | None = None,
    ) -> None:
        self._ports = ports
        self._corpora = corpora or Corpora(ports)
        self._turns = turns or LoopTurns()
        self._results = results or RememberedResults(0)

    def within(self, ports: Ports, namespace: str) -> "Scorer":
        """The same over the ports of a tenant's namespace; what is remembered has one bound for all."""
        return Scorer(ports, self._corpora.within(ports, namespace), self._turns, self._results.within(namespace))

    async def score(  # noqa: PLR0913 - what to score and whom to tell, and three things that have defaults
        self,
        items: Sequence[Item],
        requests: Sequence[MetricRequest | Failure],
        *,
        reference_set: str = "",
        deadline_s: float | None = None,
        judge_deadline_s: float | None = None,
        corpora: RequestCorpora | None = None,
        told: Told | None = None,
        emit: Emit,
    ) -> None:
        """Grades every item with every metric; returns when all results are emitted.

        Each (item, metric) pair is emitted exactly once, in no particular order, and fails alone. Cancelling the call
        cancels what it asked of the ports; what was emitted before stands.

        Args:
            items: Answers to grade.
            requests: Metrics; a Failure becomes the result of all items at its place.
            reference_set: Where prepared synthetic answers and a prepared corpus are looked up.
            deadline_s: In `time.monotonic()` seconds; what is not computed by then ends with TIMEOUT.
            judge_deadline_s: Likewise for what judges say; None: the same.
            corpora: Of the request; None: these items, and the prepared corpus as it is now.
            told: What `recall` has emitted; None: it was not asked.
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
        runner = ProgramRunner(
            self._ports,
            done,
            reference_set=reference_set,
            deadline_s=deadline_s,
            judge_deadline_s=judge_deadline_s,
            count_corpus=(corpora or self.corpora_of(items, reference_set=reference_set)).count,
            turns=self._turns,
            is_large=_large_of(items),
        )
        names = [each.metric.info.name for each in requests if isinstance(each, MetricRequest)]
        with spanned(SCORE, {ITEMS: len(items), METRICS: names}):
            if told is None:
                told = await self._recall_in_slices(items, requests, emit)
            await runner.run(_programs(items, requests, told), judged=_programs(items, requests, told, judged=True))

    def recall(self, items: Sequence[Item], requests: Sequence[MetricRequest | Failure], *, emit: Emit) -> Told:
        """Emits what is remembered of a few items, without a turn of the event loop; the rest is `score`'s.

        Args:
            items: As for `score`; they are looked up at once, so that at most RECALLED_AT_ONCE results should be asked.
            requests: As for `score`.
            emit: As for `score`.

        Returns:
            Item and metric index of each result that was emitted.
        """
        if not (mine := self._remembered(requests)):
            return set()
        return {pair for index, item in enumerate(items) for pair in _recalled(mine, index, item, emit)}

    async def _recall_in_slices(
        self, items: Sequence[Item], requests: Sequence[MetricRequest | Failure], emit: Emit
    ) -> Told:
        told: Told = set()
        if mine := self._remembered(requests):
            part = LoopSlice(self._turns)
            for index, item in enumerate(items):
                told.update(_recalled(mine, index, item, emit))
                await part.give_way()
        return told

    def _remembered(self, requests: Sequence[MetricRequest | Failure]) -> dict[int, ResultsOfMetric]:
        """By metric index, where results can be remembered."""
        found = ((index, each) for index, each in enumerate(requests) if isinstance(each, MetricRequest))
        return {index: results for index, each in found if (results := self._results.of(each)) is not None}

    def corpora_of(self, items: Sequence[Item], *, reference_set: str, corpus_digest: str = "") -> RequestCorpora:
        """The corpora of a request whose items may be scored in several parts.

        Args:
            items: All of them.
            reference_set: Of the request; empty without.
            corpus_digest: Of the prepared corpus that is meant, as `corpus_digest` gave it; empty: as it is now.
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
        writing: Writing | None = None,
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
    told: Told,
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
            if (item_index, metric_index) not in told:
                yield (item_index, metric_index), request.metric.score(item, request.parameters, request.metadata)
