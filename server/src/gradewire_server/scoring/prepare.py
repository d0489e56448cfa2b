"""Gets references ready before answers come: stores what is needed of them, fills the cache, reports progress."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from gradewire_server.domain.item import ReferenceEntry
from gradewire_server.domain.metric import Metric, Parameters
from gradewire_server.domain.needs import Corpus
from gradewire_server.domain.ports import Ports
from gradewire_server.domain.result import CacheHits, Failure, Status
from gradewire_server.metrics.checks import check_references
from gradewire_server.metrics.smile.texts import check_synthetic
from gradewire_server.scoring.corpus import entries_of
from gradewire_server.scoring.program_run import Cost
from gradewire_server.scoring.program_runner import ProgramRunner
from gradewire_server.scoring.synthetic.sentence import Writing
from gradewire_server.scoring.synthetic.writing import AnswerWriter, WrittenChunk, WrittenCounts

ENTRIES_PER_CHUNK = 64
"""Entries that are worked on together."""
ENTRIES_PER_WRITTEN_CHUNK = 32
"""The same where a judge writes: enough to keep it busy, few enough that what is embedded is not far behind."""
Preparing: TypeAlias = tuple[Metric[Any], Parameters] | Failure


@dataclass(frozen=True, slots=True)
class PreparedChunk:
    """Progress of a preparation.

    Attributes:
        entries_done: So far, failed ones included.
        cache_hits: Texts so far, by where they were found.
        synthetic: Synthetic answers so far.
        failures: New since the last one: index of the entry and the first thing that stood in its way, by index. An
            entry of which a reference stands for itself (UNPARSABLE) is prepared nevertheless.
        answers: Likewise, index of the entry and its synthetic answers, one per reference, None where there is none.
    """

    entries_done: int
    cache_hits: CacheHits
    synthetic: WrittenCounts
    failures: tuple[tuple[int, Failure], ...] = ()
    answers: tuple[tuple[int, tuple[str | None, ...]], ...] = ()


class Preparer:
    """One preparation; `run` is to be called once.

    Args:
        ports: Store, embed, and have a judge write.
        metrics: What to get ready for; a Failure is the failure of every entry, the other metrics go on.
        reference_set: Name of the set.
        deadline_s: In `time.monotonic()` seconds, or None.
        writing: How synthetic answers are written that are missing; None: they are not.
        seal: What the set was sealed with; empty: it is not.
    """

    def __init__(  # noqa: PLR0913 - what to prepare and where, and three things of which two have defaults
        self,
        ports: Ports,
        metrics: Sequence[Preparing],
        *,
        reference_set: str,
        deadline_s: float | None,
        writing: Writing | None = None,
        seal: str = "",
    ) -> None:
        self._ports = ports
        self._seal = seal
        self._metrics = metrics
        self._reference_set = reference_set
        self._deadline_s = deadline_s
        self._cost = Cost()
        self._counts = WrittenCounts()
        self._writer = None
        if writing is not None:
            self._writer = AnswerWriter(
                ports, writing, self._counts, reference_set=reference_set, deadline_s=deadline_s
            )

    async def run(self, entries: Sequence[ReferenceEntry]) -> AsyncGenerator[PreparedChunk]:
        """Works through the entries chunk by chunk and yields progress after each, and within one as a judge writes."""
        step = entries_per_chunk(writing=self._writer is not None)
        for start in range(0, len(entries), step):
            chunk = entries[start : start + step]
            outcome = WrittenChunk()
            await self._store(chunk, outcome)
            if self._writer is not None:
                bare = {index: entry for index, entry in enumerate(chunk) if not entry.synthetic_answers}
                brought = len(chunk) - len(bare)
                async with aclosing(self._writer.write(bare)) as steps:
                    async for step_done in steps:
                        if isinstance(step_done, WrittenChunk):
                            outcome.failures.update(step_done.failures)
                            outcome.faults.update(step_done.faults)
                            outcome.answers.update(step_done.answers)
                        else:
                            # One at least is left for when all is embedded.
                            yield self._progress(start + min(brought + step_done, len(chunk) - 1))
            await self._embed(chunk, outcome)
            failures = {**outcome.faults, **outcome.failures}
            yield self._progress(
                start + len(chunk),
                failures=tuple((start + index, failure) for index, failure in sorted(failures.items())),
                answers=tuple((start + index, answers) for index, answers in sorted(outcome.answers.items())),
            )

    def _progress(self, entries_done: int, **news: Any) -> PreparedChunk:
        return PreparedChunk(entries_done, replace(self._cost.cache_hits), replace(self._counts), **news)

    async def _embed(self, chunk: Sequence[ReferenceEntry], outcome: WrittenChunk) -> None:
        """Asks for all that metrics need of the entries that have not failed, and keeps the corpus."""
        failures = outcome.failures

        def done(index: int, failure: Failure | None, cost: Cost) -> None:
            self._cost.add(cost)
            if failure is not None:
                failures.setdefault(index, failure)

        runner = ProgramRunner(self._ports, done, reference_set=self._reference_set, deadline_s=self._deadline_s)
        ready = [index for index in range(len(chunk)) if index not in failures]
        metrics = [metric for metric in self._metrics if not isinstance(metric, Failure)]
        await runner.run((index, metric.prepare(chunk[index], values)) for index in ready for metric, values in metrics)
        not_kept = await self._store_corpus(chunk)
        for broken in (*self._metrics, not_kept):
            if isinstance(broken, Failure):
                for index in range(len(chunk)):
                    failures.setdefault(index, broken)

    async def _store(self, chunk: Sequence[ReferenceEntry], outcome: WrittenChunk) -> None:
        """Stores the synthetic answers that entries bring; those that cannot be stored fail."""
        given = [index for index, entry in enumerate(chunk) if entry.synthetic_answers]
        failures = await asyncio.gather(*(self._store_one(chunk[index]) for index in given))
        for index, failure in zip(given, failures, strict=True):
            if failure is not None:
                outcome.failures[index] = failure
                continue
            outcome.answers[index] = chunk[index].synthetic_answers
            self._counts.stored += len(chunk[index].synthetic_answers)

    async def _store_corpus(self, chunk: Sequence[ReferenceEntry]) -> Failure | None:
        """Adds the chunk to the set's corpus, where a metric reads one or the set is sealed."""
        metrics = [metric for metric in self._metrics if not isinstance(metric, Failure)]
        if not self._seal and all(values.corpus is not Corpus.PREPARED for _, values in metrics):
            return None
        entries = entries_of((entry.question, entry.references) for entry in chunk)
        if not entries:
            return None
        return await self._ports.reference_sets.store_entries(self._reference_set, entries, seal=self._seal)

    async def _store_one(self, entry: ReferenceEntry) -> Failure | None:
        failure = check_references(entry.references) or check_synthetic(entry.references, entry.synthetic_answers)
        if failure is not None:
            return failure
        by_reference: dict[str, str] = {}
        for index, (reference, answer) in enumerate(zip(entry.references, entry.synthetic_answers, strict=True)):
            if by_reference.setdefault(reference, answer) != answer:
                return Failure(
                    Status.INVALID_INPUT,
                    f"synthetic_answers[{index}]: its reference stands twice in the entry, with different answers",
                )
        return await self._ports.reference_sets.store_prepared(self._reference_set, entry.question, by_reference)


def entries_per_chunk(*, writing: bool) -> int:
    """Entries that are worked on together."""
    return ENTRIES_PER_WRITTEN_CHUNK if writing else ENTRIES_PER_CHUNK
