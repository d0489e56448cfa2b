"""Scores items with metrics, and gets references ready: what requests ask of metrics and backends."""

from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from gradewire_proto.conventions.spans import spanned
from gradewire_proto.conventions.telemetry_names import ITEMS, METRICS, SCORE
from gradewire_server.domain.item import Item, ReferenceEntry
from gradewire_server.domain.metric import Metric, ModelMetadata, Parameters
from gradewire_server.domain.needs import Program
from gradewire_server.domain.ports import Ports
from gradewire_server.domain.result import Failure, MetricResult, ScoredResult
from gradewire_server.scoring.corpus import Corpora, RequestCorpora
from gradewire_server.scoring.loop_turns import LoopTurns
from gradewire_server.scoring.prepare import PreparedChunk, Preparer
from gradewire_server.scoring.program_run import Cost
from gradewire_server.scoring.program_runner import ProgramRunner
from gradewire_server.scoring.synthetic.sentence import Writing

_LARGE_CHARACTERS: Final = 8_192
"""Of an item: metrics that read words take up to 0.4 µs for each of them, `calibrated` up to 1 µs."""

Emit: TypeAlias = Callable[[int, int, ScoredResult], None]
"""Called with each result when it is done: item index, metric index, result."""


@dataclass(frozen=True, slots=True)
class MetricRequest:
    """A metric of a request, ready to run.

    Attributes:
        metric: From the registry.
        parameters: Of its `parameters_type`; the model is NAME or NAME@DIGEST.
        metadata: Of that model; empty for metrics without one.
    """

    metric: Metric[Any]
    parameters: Parameters
    metadata: ModelMetadata


class Scorer:
    """Runs metrics over the server's ports; holds no state of a request, so any number may be scored at once.

    Args:
        ports: Answer what metrics need.
        corpora: The prepared corpora behind these ports; None: made here.
        turns: Of bulk work on the event loop; None: made here.
    """

    def __init__(self, ports: Ports, corpora: Corpora | None = None, turns: LoopTurns | None = None) -> None:
        self._ports = ports
        self._corpora = corpora or Corpora(ports)
        self._turns = turns or LoopTurns()

    def within(self, ports: Ports, namespace: str) -> "Scorer":
        """The same over the ports of a tenant's namespace; what is remembered of corpora has one bound for all."""
        return Scorer(ports, self._corpora.within(ports, namespace), self._turns)

    async def score(  # noqa: PLR0913 - what to score and whom to tell, and three things that have defaults
        self,
        items: Sequence[Item],
        requests: Sequence[MetricRequest | Failure],
        *,
        reference_set: str = "",
        deadline_s: float | None = None,
        judge_deadline_s: float | None = None,
        corpora: RequestCorpora | None = None,
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
            emit: Called with each result; must not block.
        """

        def done(key: tuple[int, int], result: MetricResult | Failure, cost: Cost) -> None:
            if isinstance(result, Failure):
                result = MetricResult.failed(result)
            emit(*key, ScoredResult(result, cost.cache_hits, cost.timing))

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
            await runner.run(_programs(items, requests, judged=False), judged=_programs(items, requests, judged=True))

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


def _programs(
    items: Sequence[Item], requests: Sequence[MetricRequest | Failure], *, judged: bool
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
            yield (item_index, metric_index), request.metric.score(item, request.parameters, request.metadata)
