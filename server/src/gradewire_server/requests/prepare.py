"""References.Prepare: registers a reference set, fills the cache, tells of progress."""

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from functools import partial

from gradewire_proto.conventions.reference_sets import name_set, split_pin
from gradewire_proto.v1 import references_pb2
from gradewire_server.domain.caller import Caller
from gradewire_server.domain.item import ReferenceEntry
from gradewire_server.domain.result import Failure
from gradewire_server.requests.admission.work import Work
from gradewire_server.requests.context import RequestContext
from gradewire_server.requests.convert import fill_hits, read_entry, read_reference_set
from gradewire_server.requests.errors import DeadlineExceededError, InvalidRequestError
from gradewire_server.requests.generation import plan_generation
from gradewire_server.requests.sets.immutable import admit, check_complete, check_whole
from gradewire_server.requests.yield_budget import YieldBudget, read_beside
from gradewire_server.scoring import PreparedChunk
from gradewire_server.scoring.prepare import entries_per_chunk


async def prepare(
    context: RequestContext, request: references_pb2.PrepareRequest, *, deadline_s: float | None, caller: Caller
) -> AsyncGenerator[references_pb2.PrepareProgress]:
    """Yields progress, the last message with `complete`; without `deadline_s` it may take as long as it needs.

    Raises:
        InvalidRequestError: Names the field at fault.
        SetUnavailableError: The store does not say what an immutable set holds.
        NothingLoadedError: No metric of the request can be computed here, or the judge is not here that is to write.
        DeadlineExceededError: What was done is kept: the same call again goes on from there.
    """
    ends_s = None if deadline_s is None else time.monotonic() + deadline_s
    context.check_count(len(request.entries), "entries")
    plans = await context.plan(request.metrics)
    generation = await plan_generation(context, request)
    named = read_reference_set(request.reference_set)
    if split_pin(named)[1]:
        raise InvalidRequestError("reference_set", "a name must not end in '@' and 8 or more hex digits, which pin one")
    budget = YieldBudget()
    read = []
    for message in request.entries:
        if budget.is_exceeded_by(message):
            await asyncio.sleep(0)
        read.append(await read_beside(budget.last_bytes, partial(read_entry, message, context.limits)))
    if request.immutable:
        await asyncio.to_thread(check_whole, read)
    entries = [entry for entry in read if isinstance(entry, ReferenceEntry)]
    positions = [index for index, entry in enumerate(read) if isinstance(entry, ReferenceEntry)]
    progress = references_pb2.PrepareProgress(
        reference_set=named or await _named(entries, generation.digests if generation else ()),
        entries_total=len(read),
        failures=[_failure(index, entry) for index, entry in enumerate(read) if isinstance(entry, Failure)],
    )
    seal = await admit(context, request, progress.reference_set, entries)
    refused = len(progress.failures)
    progress.entries_done = refused
    chunks = context.scorer.prepare(
        entries,
        [plan.request for plan in plans],
        reference_set=progress.reference_set,
        deadline_s=ends_s,
        writing=generation.writing if generation else None,
        seal=seal,
    )
    kind = ("prepare", *(plan.provenance.name for plan in plans))
    size_bytes = request.ByteSize()
    step = entries_per_chunk(writing=generation is not None)
    async with aclosing(chunks):
        while (left := len(entries) + refused - progress.entries_done) > 0:
            # Held for the work alone: a caller that reads no progress must not keep permits from others.
            count = min(step, left)
            work = Work(caller, kind, size_bytes * count // len(read), count, judged=generation is not None)
            async with context.admission.bulk(work, source=id(request)):
                chunk = await anext(chunks)
            context.count_synthetic(
                chunk.synthetic.generated - progress.synthetic_answers_generated,
                chunk.synthetic.fallback - progress.synthetic_answers_fallback,
            )
            if ends_s is not None and time.monotonic() >= ends_s:
                raise DeadlineExceededError("the set is not wholly prepared yet; call again to go on")
            _advance(progress, chunk, positions, refused)
            if generation is not None and generation.return_answers:
                _return_answers(progress, chunk, positions)
            yield progress
            del progress.failures[:]
            del progress.synthetic_answers[:]
            await asyncio.sleep(0)
    if request.immutable and not (entries and request.expected_digest):
        progress.corpus_digest = await check_complete(context, progress.reference_set, seal)
    progress.complete = True
    progress.provenance.extend(plan.provenance_in(progress.reference_set, progress.corpus_digest) for plan in plans)
    if generation is not None:
        progress.generation.CopyFrom(generation.provenance)
    yield progress


async def _named(entries: Sequence[ReferenceEntry], writer: Sequence[str]) -> str:
    """As `name_set`; on a thread, for thousands of entries take tens of milliseconds."""
    return await asyncio.to_thread(name_set, entries, writer)


def _advance(
    progress: references_pb2.PrepareProgress, chunk: PreparedChunk, positions: Sequence[int], refused: int
) -> None:
    progress.entries_done = refused + chunk.entries_done
    progress.synthetic_answers_stored = chunk.synthetic.stored
    progress.synthetic_answers_generated = chunk.synthetic.generated
    progress.synthetic_answers_fallback = chunk.synthetic.fallback
    fill_hits(progress.cache_hits, chunk.cache_hits)
    progress.failures.extend(_failure(positions[index], failure) for index, failure in chunk.failures)


def _return_answers(progress: references_pb2.PrepareProgress, chunk: PreparedChunk, positions: Sequence[int]) -> None:
    for index, answers in chunk.answers:
        progress.synthetic_answers.add(index=positions[index], synthetic_answers=[answer or "" for answer in answers])


def _failure(index: int, failure: Failure) -> references_pb2.EntryFailure:
    return references_pb2.EntryFailure(
        index=index,
        status=int(failure.status),  # type: ignore[arg-type]
        message=failure.message,
    )
