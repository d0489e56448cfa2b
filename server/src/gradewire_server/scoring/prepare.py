"""Prepare references: generate and store synthetic answers, store the corpus, and fill the cache."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

from gradewire_proto.choices import Corpus
from gradewire_server.domain.items import CacheHits, Failure, ReferenceEntry, Status
from gradewire_server.domain.metric import Metric, Parameters
from gradewire_server.domain.ports import Ports
from gradewire_server.metrics.common import check_question, check_references
from gradewire_server.metrics.smile.texts import check_synthetic
from gradewire_server.scoring.calls import Cost
from gradewire_server.scoring.corpus import entries_of
from gradewire_server.scoring.program_runner import DEFECT, ProgramRunner
from gradewire_server.scoring.synthetic import SyntheticAnswer, WritingSettings, stands_for_itself, write_sentence

ENTRIES_PER_CHUNK: Final = 64
ENTRIES_PER_WRITTEN_CHUNK: Final = 32
SENTENCES_AT_ONCE: Final = 16
PATIENCE: Final = 4
"""The maximum number of retries for a sentence if the judge is unavailable."""
LONGEST_PAUSE_S: Final = 30.0
_EARLIER: Final = "an earlier call found no valid sentence for this reference"

Preparing: TypeAlias = tuple[Metric[Any], Parameters] | Failure


@dataclass(slots=True)
class WrittenCounts:
    """The numbers of synthetic answers so far.

    Attributes:
        stored: The number of synthetic answers in the set, including answers from earlier calls.
        generated: The number of sentences that the judge wrote in this call.
        fallback: The number of references that are themselves used as synthetic answers.
    """

    stored: int = 0
    generated: int = 0
    fallback: int = 0


@dataclass(slots=True, eq=False)
class _Entry:
    """An entry with its synthetic answers.

    Attributes:
        answers: A synthetic answer for each reference, or None if the answer is missing.
        awaited: The number of sentences that the entry still waits for.
        faults: Why a reference itself is used as a synthetic answer, by the reference's index.
    """

    entry: ReferenceEntry
    answers: list[str | None]
    awaited: int = 0
    failure: Failure | None = None
    faults: dict[int, str] = field(default_factory=dict)

    def fault(self) -> Failure:
        named = "; ".join(f"references[{index}] is used unchanged: {why}" for index, why in sorted(self.faults.items()))
        return Failure(Status.UNPARSABLE, named)


@dataclass(frozen=True, slots=True)
class _Outcome:
    """The outcome of a chunk, by the entry's index in the chunk.

    Attributes:
        failures: The failures of entries with a missing synthetic answer.
        faults: The failures (UNPARSABLE) of entries that use a reference itself as a synthetic answer.
    """

    failures: dict[int, Failure] = field(default_factory=dict)
    faults: dict[int, Failure] = field(default_factory=dict)
    answers: dict[int, tuple[str | None, ...]] = field(default_factory=dict)


class AnswerWriter:
    """A writer of missing synthetic answers, which a judge generates."""

    def __init__(
        self,
        ports: Ports,
        writing: WritingSettings,
        counts: WrittenCounts,
        *,
        reference_set: str,
        deadline_s: float | None,
    ) -> None:
        self._ports = ports
        self._writing = writing
        self._reference_set = reference_set
        self._deadline_s = deadline_s
        self._counts = counts

    async def write(self, entries: Mapping[int, ReferenceEntry], outcome: _Outcome) -> AsyncGenerator[int]:
        """Generate and store missing synthetic answers, fill in `outcome`, and yield the number of finished entries."""
        chunk = {index: _Entry(entry, [None] * len(entry.references)) for index, entry in entries.items()}
        await asyncio.gather(*map(self._look_up_stored_answers, chunk.values()))
        waiting = _missing(chunk.values())
        keys = deque(waiting)
        running: dict[asyncio.Task[SyntheticAnswer | Failure], tuple[str, str]] = {}
        try:
            while keys or running:
                while keys and len(running) < SENTENCES_AT_ONCE:
                    key = keys.popleft()
                    running[asyncio.create_task(self._write_one(*key))] = key
                finished, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for task in finished:
                    self._settle(waiting[running.pop(task)], task.result())
                yield sum(not work.awaited for work in chunk.values())
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
        for index, work in chunk.items():
            outcome.answers[index] = tuple(work.answers)
            if work.failure is not None:
                outcome.failures[index] = work.failure
            if work.faults:
                outcome.faults[index] = work.fault()

    async def _look_up_stored_answers(self, work: _Entry) -> None:
        entry = work.entry
        work.failure = check_references(entry.references) or check_question(
            entry.question,
            why="a synthetic answer is written from the question and the reference",
            where="with synthetic answers",
        )
        if work.failure is not None:
            return
        sets = self._ports.reference_sets
        found = await sets.prepared_answers(self._reference_set, entry.question, entry.references)
        if isinstance(found, Failure):
            work.failure = found
            return
        work.answers = list(found)
        for index, (reference, answer) in enumerate(zip(entry.references, found, strict=True)):
            self._counts.stored += answer is not None
            if answer == reference and not stands_for_itself(reference):
                work.faults[index] = _EARLIER
                self._counts.fallback += 1

    async def _write_one(self, question: str, reference: str) -> SyntheticAnswer | Failure:
        """Generate and store a sentence. If another call has already stored a sentence, return the stored sentence."""
        written = await self._write_with_retries(question, reference)
        if isinstance(written, Failure):
            return written
        sets = self._ports.reference_sets
        failure = await sets.store_prepared(self._reference_set, question, {reference: written.text})
        if failure is None:
            return written
        found = await sets.prepared_answers(self._reference_set, question, (reference,))
        if isinstance(found, Failure) or found[0] is None:
            return failure
        return SyntheticAnswer(
            found[0], fault=_EARLIER if found[0] == reference and not stands_for_itself(reference) else ""
        )

    async def _write_with_retries(self, question: str, reference: str) -> SyntheticAnswer | Failure:
        for _ in range(PATIENCE):
            written = await self._ask(question, reference)
            pause_s = written.retry_after_s if isinstance(written, Failure) else None
            if pause_s is None:
                return written
            pause_s = min(pause_s, LONGEST_PAUSE_S)
            if self._deadline_s is not None and time.monotonic() + pause_s >= self._deadline_s:
                return written
            await asyncio.sleep(pause_s)
        return await self._ask(question, reference)

    async def _ask(self, question: str, reference: str) -> SyntheticAnswer | Failure:
        outcome: list[SyntheticAnswer | Failure] = [DEFECT]

        def done(_key: None, result: SyntheticAnswer | Failure, _cost: Cost) -> None:
            outcome[0] = result

        runner = ProgramRunner(self._ports, done, reference_set=self._reference_set, deadline_s=self._deadline_s)
        await runner.run([(None, write_sentence(question, reference, self._writing))])
        return outcome[0]

    def _settle(self, places: Sequence[tuple[_Entry, int]], written: SyntheticAnswer | Failure) -> None:
        """Record a sentence, or the failure to write one, in all entries that wait for the sentence."""
        for work, _ in places:
            work.awaited -= 1
        if isinstance(written, Failure):
            for work, index in places:
                at = f"references[{index}]: {written.message}"
                work.failure = work.failure or Failure(written.status, at, written.retry_after_s)
            return
        self._counts.generated += bool(written.tries) and not written.fault
        for work, index in places:
            work.answers[index] = written.text
            self._counts.stored += 1
            if written.fault:
                work.faults[index] = written.fault
                self._counts.fallback += 1


def _missing(chunk: Iterable[_Entry]) -> dict[tuple[str, str], list[tuple[_Entry, int]]]:
    """Return the entries that wait for a sentence, by (question, reference). Also set each entry's `awaited`."""
    waiting: dict[tuple[str, str], list[tuple[_Entry, int]]] = {}
    for work in chunk:
        if work.failure is None:
            for index, reference in enumerate(work.entry.references):
                if work.answers[index] is None:
                    waiting.setdefault((work.entry.question, reference), []).append((work, index))
                    work.awaited += 1
    return waiting


@dataclass(frozen=True, slots=True)
class PreparedChunk:
    """The progress of a preparation.

    Attributes:
        failures: (entry index, failure) pairs since the last progress report. An entry with the failure UNPARSABLE is
            prepared, but uses a reference itself as a synthetic answer.
        answers: (entry index, synthetic answers) pairs since the last progress report, with None for missing answers.
    """

    entries_done: int
    cache_hits: CacheHits
    synthetic: WrittenCounts
    failures: tuple[tuple[int, Failure], ...] = ()
    answers: tuple[tuple[int, tuple[str | None, ...]], ...] = ()


class Preparer:
    """The preparation of a reference set for metrics. Call `run` once."""

    def __init__(  # noqa: PLR0913 - the metrics, their ports and set, and three settings
        self,
        ports: Ports,
        metrics: Sequence[Preparing],
        *,
        reference_set: str,
        deadline_s: float | None,
        writing: WritingSettings | None = None,
        seal: str = "",
    ) -> None:
        self._ports = ports
        self._seal = seal
        self._broken = [metric for metric in metrics if isinstance(metric, Failure)]
        self._metrics = [metric for metric in metrics if not isinstance(metric, Failure)]
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
        """Prepare the entries. Yield progress after each chunk, and while a judge writes synthetic answers."""
        step = entries_per_chunk(writing=self._writer is not None)
        for start in range(0, len(entries), step):
            chunk = entries[start : start + step]
            outcome = _Outcome()
            await self._store_given_answers(chunk, outcome)
            if self._writer is not None:
                bare = {index: entry for index, entry in enumerate(chunk) if not entry.synthetic_answers}
                brought = len(chunk) - len(bare)
                async with aclosing(self._writer.write(bare, outcome)) as steps:
                    async for written in steps:
                        # A chunk's last entry counts as done only after embedding.
                        yield self._progress(start + min(brought + written, len(chunk) - 1))
            await self._embed(chunk, outcome)
            failures = {**outcome.faults, **outcome.failures}
            yield self._progress(
                start + len(chunk),
                failures=tuple((start + index, failure) for index, failure in sorted(failures.items())),
                answers=tuple((start + index, answers) for index, answers in sorted(outcome.answers.items())),
            )

    def _progress(self, entries_done: int, **news: Any) -> PreparedChunk:
        return PreparedChunk(entries_done, replace(self._cost.cache_hits), replace(self._counts), **news)

    async def _embed(self, chunk: Sequence[ReferenceEntry], outcome: _Outcome) -> None:
        """Run the metrics' preparation for all entries that have not failed, and store the corpus."""
        failures = outcome.failures

        def done(index: int, failure: Failure | None, cost: Cost) -> None:
            self._cost.add(cost)
            if failure is not None:
                failures.setdefault(index, failure)

        runner = ProgramRunner(self._ports, done, reference_set=self._reference_set, deadline_s=self._deadline_s)
        ready = [index for index in range(len(chunk)) if index not in failures]
        await runner.run(
            (index, metric.prepare(chunk[index], values)) for index in ready for metric, values in self._metrics
        )
        not_kept = await self._store_corpus(chunk)
        for broken in (*self._broken, *([not_kept] if not_kept else ())):
            for index in range(len(chunk)):
                failures.setdefault(index, broken)

    async def _store_given_answers(self, chunk: Sequence[ReferenceEntry], outcome: _Outcome) -> None:
        given = [index for index, entry in enumerate(chunk) if entry.synthetic_answers]
        failures = await asyncio.gather(*(self._store_one(chunk[index]) for index in given))
        for index, failure in zip(given, failures, strict=True):
            if failure is not None:
                outcome.failures[index] = failure
                continue
            outcome.answers[index] = chunk[index].synthetic_answers
            self._counts.stored += len(chunk[index].synthetic_answers)

    async def _store_corpus(self, chunk: Sequence[ReferenceEntry]) -> Failure | None:
        """Add the chunk's entries to the set's corpus if a metric uses the corpus or the set is sealed."""
        if not self._seal and all(values.corpus is not Corpus.PREPARED for _, values in self._metrics):
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
                    f"synthetic_answers[{index}]: must equal the answer of an earlier reference with the same text",
                )
        return await self._ports.reference_sets.store_prepared(self._reference_set, entry.question, by_reference)


def entries_per_chunk(*, writing: bool) -> int:
    """Return the number of entries in a chunk. `writing` is True if a judge writes synthetic answers."""
    return ENTRIES_PER_WRITTEN_CHUNK if writing else ENTRIES_PER_CHUNK
