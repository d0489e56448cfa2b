"""Handle References.Prepare: store a reference set, fill the cache and report progress."""

import asyncio
import re
import time
from collections.abc import AsyncGenerator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias, TypeVar
from urllib.parse import quote

from gradewire_proto.v1 import references_pb2, types_pb2
from gradewire_proto.wire_rules import digest_entries, name_set, split_pin, with_digest
from gradewire_server.domain.caller import LOCAL, Caller
from gradewire_server.domain.items import Failure, ReferenceEntry, Status, quoted
from gradewire_server.domain.metric import ParameterError
from gradewire_server.loop_turns import give_way
from gradewire_server.metrics.common import check_references
from gradewire_server.metrics.prompts.template import PromptError
from gradewire_server.requests.admission import Work
from gradewire_server.requests.context import RequestContext, read_prompt_ahead
from gradewire_server.requests.convert import fill_hits, read_entry, read_in_turns, read_reference_set
from gradewire_server.requests.errors import (
    DeadlineExceededError,
    InvalidRequestError,
    SetUnavailableError,
)
from gradewire_server.requests.plan import check_strings
from gradewire_server.scoring.corpus import digest_of, entries_of
from gradewire_server.scoring.prepare import entries_per_chunk
from gradewire_server.scoring.synthetic import FIRST, WritingSettings

T = TypeVar("T")
_Entry: TypeAlias = tuple[str, tuple[str, ...]]
_DIGEST: Final = re.compile(r"[0-9a-fA-F]{32}")

NAME: Final = "synthetic"
"""The metric name in prompt files and provenance."""
VERSION: Final = 1
"""The version of the answer generation. Increment the version after a change that may accept different sentences."""


def check_whole(read: Sequence[ReferenceEntry | Failure]) -> None:
    """Raise InvalidRequestError if an entry is invalid. An immutable set must be complete."""
    for index, entry in enumerate(read):
        failure = entry if isinstance(entry, Failure) else check_references(entry.references)
        if failure is not None:
            raise InvalidRequestError(f"entries[{index}]", f"{failure.message}; an immutable set must be complete")


async def admit(
    context: RequestContext,
    request: references_pb2.PrepareRequest,
    reference_set: str,
    entries: Sequence[ReferenceEntry],
) -> str:
    """Check a request before its entries are stored. Return an immutable set's digest, or "" if the set may grow.

    Raises:
        InvalidRequestError: An immutable set's content does not match the request.
        SetUnavailableError: The store does not answer.
    """
    expected = request.expected_digest
    if expected and not request.immutable:
        raise InvalidRequestError(
            "expected_digest", "needs immutable; set immutable to true, or leave expected_digest out"
        )
    if expected and _DIGEST.fullmatch(expected) is None:
        raise InvalidRequestError("expected_digest", "must be 32 hex digits")
    expected = expected.lower()
    sets = context.ports.reference_sets
    sealed = _stored(await sets.seal_of(reference_set))
    if not request.immutable and not sealed:
        return ""
    wanted = expected
    if not wanted:
        wanted = await asyncio.to_thread(digest_entries, entries) if request.immutable and entries else sealed
    if not wanted:
        raise InvalidRequestError("entries", "must contain at least one entry if the set is immutable")
    if sealed and sealed != wanted:
        message = (
            f"{quoted(reference_set)} is immutable with the digest {sealed}, but these entries have the digest "
            f"{wanted}; use another name"
        )
        raise InvalidRequestError("reference_set", message)
    known = await _known_entries(context, reference_set)
    digest = await digest_of(tuple(known))
    nothing_else, all_given = await asyncio.to_thread(_compared, known, entries)
    if not (sealed or digest == wanted or nothing_else):
        message = (
            f"{quoted(reference_set)} contains other entries: its digest is {digest}, not {wanted}; use another name"
        )
        raise InvalidRequestError("reference_set", message)
    may_grow = request.immutable and digest != wanted
    if not (may_grow or all_given):
        message = f"{quoted(reference_set)} is immutable (digest {wanted}) and accepts no new entries; use another name"
        raise InvalidRequestError("reference_set", message)
    if not sealed:
        _stored(await sets.seal(reference_set, wanted))
    return wanted


async def check_complete(context: RequestContext, reference_set: str, seal: str) -> str:
    """Check that an immutable set is complete, and return its digest.

    Raises:
        InvalidRequestError: The set is incomplete or does not match `seal`.
        SetUnavailableError: The store does not answer.
    """
    found = await context.scorer.corpus_digest(reference_set)
    if isinstance(found, Failure) and found.status is Status.NOT_PREPARED:
        raise InvalidRequestError("reference_set", f"{quoted(reference_set)} is incomplete: {found.message}")
    found = _stored(found)
    if found != seal:
        raise InvalidRequestError(
            "reference_set", f"{quoted(reference_set)} has the digest {found}, but was sealed with the digest {seal}"
        )
    return found


async def _known_entries(context: RequestContext, reference_set: str) -> AbstractSet[_Entry]:
    there = await context.ports.reference_sets.entries(reference_set)
    if isinstance(there, Failure) and there.status is Status.NOT_PREPARED:
        return frozenset()
    return await asyncio.to_thread(frozenset, _stored(there))


def _compared(known: AbstractSet[_Entry], entries: Sequence[ReferenceEntry]) -> tuple[bool, bool]:
    given = set(entries_of((entry.question, entry.references) for entry in entries))
    return known <= given, given <= known


def _stored(found: T | Failure) -> T:
    """Return the store's answer, or raise InvalidRequestError or SetUnavailableError if `found` is a failure."""
    if not isinstance(found, Failure):
        return found
    if found.status is Status.INVALID_INPUT:
        raise InvalidRequestError("reference_set", found.message.removeprefix("reference_set: "))
    raise SetUnavailableError(found.message)


@dataclass(frozen=True, slots=True)
class Generation:
    """The settings for the generation of missing synthetic answers, with provenance."""

    writing: WritingSettings
    provenance: types_pb2.Provenance

    @property
    def digests(self) -> tuple[str, str]:
        """The digests of the judge and the prompt."""
        return self.provenance.model_digest, self.provenance.prompt_digest


async def plan_generation(context: RequestContext, request: references_pb2.PrepareRequest) -> Generation | None:
    """Return a request's settings for generating synthetic answers, or None without such settings.

    Raises:
        InvalidRequestError: The judge's name or the prompt is invalid.
        NothingLoadedError: The judge is not available.
    """
    if not request.HasField("generate"):
        return None
    message = request.generate
    try:
        check_strings(message)
    except ParameterError as error:
        raise InvalidRequestError(f"generate.{error.field}", error.message) from None
    judge = context.judge(message.model, "generate.model")
    await read_prompt_ahead(context.prompts, NAME, message.prompt)
    try:
        prompt = context.prompts.find(NAME, message.prompt)
    except PromptError as error:
        raise InvalidRequestError("generate.prompt", str(error)) from None
    if FIRST not in prompt.variants:
        raise InvalidRequestError("generate.prompt", f"{prompt.title} must contain the table [variants.{FIRST}]")
    line = (
        f"{NAME}/{VERSION}?model={with_digest(quote(judge.name), judge.digest)}"
        f"&prompt={with_digest(prompt.title, prompt.digest)}"
    )
    provenance = types_pb2.Provenance(
        name=NAME,
        version=VERSION,
        model=judge.name,
        model_digest=judge.digest,
        prompt=prompt.title,
        prompt_digest=prompt.digest,
        line=line,
    )
    return Generation(WritingSettings(f"{judge.name}@{judge.digest}", prompt), provenance)


async def prepare(
    context: RequestContext,
    request: references_pb2.PrepareRequest,
    *,
    deadline_s: float | None = None,
    caller: Caller = LOCAL,
) -> AsyncGenerator[references_pb2.PrepareProgress]:
    """Prepare a reference set and yield progress messages. The last message has `complete` set.

    If `deadline_s` is None, there is no deadline.

    Raises:
        InvalidRequestError: The request is invalid.
        SetUnavailableError: The store does not answer.
        NothingLoadedError: This server can compute none of the metrics, or the judge is not available.
        DeadlineExceededError: The deadline passed. A repeated call continues the work.
    """
    ends_s = None if deadline_s is None else time.monotonic() + deadline_s
    context.check_count(len(request.entries), "entries")
    plans = await context.plan(request.metrics)
    generation = await plan_generation(context, request)
    named = read_reference_set(request.reference_set)
    if split_pin(named)[1]:
        raise InvalidRequestError(
            "reference_set", "must not end in '@' and 8 or more hex digits, because such an ending means a digest"
        )
    reading = read_in_turns(request.entries, partial(read_entry, limits=context.limits))
    read = [entry async for _, entry in reading]
    if request.immutable:
        await asyncio.to_thread(check_whole, read)
    entries = [entry for entry in read if isinstance(entry, ReferenceEntry)]
    positions = [index for index, entry in enumerate(read) if isinstance(entry, ReferenceEntry)]
    written_by = generation.digests if generation else ()
    progress = references_pb2.PrepareProgress(
        reference_set=named or await asyncio.to_thread(name_set, entries, written_by),
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
            # Do not hold the turn while the caller reads the progress.
            count = min(step, left)
            work = Work(caller, kind, size_bytes * count // len(read), count, judged=generation is not None)
            async with context.admission.bulk(work, source=id(request)):
                chunk = await anext(chunks)
            context.count_synthetic(
                chunk.synthetic.generated - progress.synthetic_answers_generated,
                chunk.synthetic.fallback - progress.synthetic_answers_fallback,
            )
            if ends_s is not None and time.monotonic() >= ends_s:
                raise DeadlineExceededError(
                    "the deadline passed before the set was complete; repeat the call to continue"
                )
            progress.MergeFrom(
                references_pb2.PrepareProgress(
                    entries_done=refused + chunk.entries_done,
                    synthetic_answers_stored=chunk.synthetic.stored,
                    synthetic_answers_generated=chunk.synthetic.generated,
                    synthetic_answers_fallback=chunk.synthetic.fallback,
                    failures=[_failure(positions[index], failure) for index, failure in chunk.failures],
                )
            )
            fill_hits(progress.cache_hits, chunk.cache_hits)
            if request.generate.return_answers:
                for index, answers in chunk.answers:
                    progress.synthetic_answers.add(
                        index=positions[index], synthetic_answers=[answer or "" for answer in answers]
                    )
            yield progress
            del progress.failures[:]
            del progress.synthetic_answers[:]
            await give_way()
    if request.immutable and not (entries and request.expected_digest):
        progress.corpus_digest = await check_complete(context, progress.reference_set, seal)
    progress.complete = True
    progress.provenance.extend(plan.provenance_in(progress.reference_set, progress.corpus_digest) for plan in plans)
    if generation is not None:
        progress.generation.CopyFrom(generation.provenance)
    yield progress


def _failure(index: int, failure: Failure) -> references_pb2.EntryFailure:
    return references_pb2.EntryFailure(
        index=index,
        status=int(failure.status),  # type: ignore[arg-type]
        message=failure.message,
    )
