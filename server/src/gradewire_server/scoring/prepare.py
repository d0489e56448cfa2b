"""Gets references ready before answers come: stores what is needed of them, fills the cache, tells how far it is."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from gradewire_server.domain.engine import Engine
from gradewire_server.domain.item import ReferenceEntry
from gradewire_server.domain.metric import Metric, Parameters
from gradewire_server.domain.needs import Corpus
from gradewire_server.domain.result import CacheHits, Failure, Status
from gradewire_server.metrics.checks import check_references
from gradewire_server.metrics.smile_texts import check_synthetic
from gradewire_server.scoring.corpus import entries_of
from gradewire_server.scoring.drive import Drive
from gradewire_server.scoring.jobs import Cost

ENTRIES_PER_CHUNK = 64
"""Entries between two reports of progress."""
Preparing: TypeAlias = tuple[Metric[Any], Parameters] | Failure


@dataclass(frozen=True, slots=True)
class PreparedChunk:
    """How far a preparation is, after a chunk of entries.

    Attributes:
        entries_done: So far, failed ones included.
        cache_hits: Texts so far, by where they were found.
        synthetic_answers_stored: So far, those that were there before included.
        failures: New since the last chunk: index of the entry and the first thing that stood in its way, by index.
    """

    entries_done: int
    cache_hits: CacheHits
    synthetic_answers_stored: int
    failures: tuple[tuple[int, Failure], ...]


class Preparer:
    """One preparation; `run` is to be called once.

    Args:
        engine: Stores and embeds.
        metrics: What to get ready for; a Failure is the failure of every entry, the other metrics go on.
        reference_set: Name of the set.
        deadline_s: In `time.monotonic()` seconds, or None.
    """

    def __init__(
        self, engine: Engine, metrics: Sequence[Preparing], *, reference_set: str, deadline_s: float | None
    ) -> None:
        self._engine = engine
        self._metrics = metrics
        self._reference_set = reference_set
        self._deadline_s = deadline_s
        self._cost = Cost()
        self._stored = 0

    async def run(self, entries: Sequence[ReferenceEntry]) -> AsyncIterator[PreparedChunk]:
        """Works through the entries chunk by chunk and yields progress after each."""
        for start in range(0, len(entries), ENTRIES_PER_CHUNK):
            chunk = entries[start : start + ENTRIES_PER_CHUNK]
            failures = await self._prepare(chunk)
            yield PreparedChunk(
                entries_done=start + len(chunk),
                cache_hits=replace(self._cost.cache_hits),
                synthetic_answers_stored=self._stored,
                failures=tuple((start + index, failure) for index, failure in sorted(failures.items())),
            )

    async def _prepare(self, chunk: Sequence[ReferenceEntry]) -> dict[int, Failure]:
        failures = await self._store(chunk)

        def done(index: int, failure: Failure | None, cost: Cost) -> None:
            self._cost.add(cost)
            if failure is not None:
                failures.setdefault(index, failure)

        drive = Drive(self._engine, done, reference_set=self._reference_set, deadline_s=self._deadline_s)
        ready = [index for index in range(len(chunk)) if index not in failures]
        metrics = [metric for metric in self._metrics if not isinstance(metric, Failure)]
        await drive.run((index, metric.prepare(chunk[index], values)) for index in ready for metric, values in metrics)
        not_kept = await self._store_corpus(chunk)
        for broken in (*self._metrics, not_kept):
            if isinstance(broken, Failure):
                for index in range(len(chunk)):
                    failures.setdefault(index, broken)
        return failures

    async def _store(self, chunk: Sequence[ReferenceEntry]) -> dict[int, Failure]:
        """Stores the chunk's synthetic answers; entries that cannot be stored fail."""
        given = [index for index, entry in enumerate(chunk) if entry.synthetic_answers]
        answers = await asyncio.gather(*(self._store_one(chunk[index]) for index in given))
        failures = {index: answer for index, answer in zip(given, answers, strict=True) if answer is not None}
        self._stored += sum(len(chunk[index].synthetic_answers) for index in given if index not in failures)
        return failures

    async def _store_corpus(self, chunk: Sequence[ReferenceEntry]) -> Failure | None:
        """Adds the chunk to the set's corpus, where a metric reads one."""
        metrics = [metric for metric in self._metrics if not isinstance(metric, Failure)]
        if all(values.corpus is not Corpus.PREPARED for _, values in metrics):
            return None
        entries = entries_of((entry.question, entry.references) for entry in chunk)
        return await self._engine.store_entries(self._reference_set, entries) if entries else None

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
        return await self._engine.store_prepared(self._reference_set, entry.question, by_reference)
