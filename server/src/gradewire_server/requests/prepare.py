"""References.Prepare: register a reference set (immutable ones by digest), fill the cache, report progress."""

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
"""Name of the prompts' metric, and in the provenance."""
VERSION: Final = 1
"""Raised whenever another sentence can be accepted, or stand for a reference that has none."""


def check_whole(read: Sequence[ReferenceEntry | Failure]) -> None:
    """Raises InvalidRequestError where an entry cannot be a part of a set: an immutable one must be whole."""
    for index, entry in enumerate(read):
        failure = entry if isinstance(entry, Failure) else check_references(entry.references)
        if failure is not None:
            raise InvalidRequestError(f"entries[{index}]", f"{failure.message}; an immutable set must be whole")


async def admit(
    context: RequestContext,
    request: references_pb2.PrepareRequest,
    reference_set: str,
    entries: Sequence[ReferenceEntry],
) -> str:
    """Return what entries seal an immutable set with, "" for one that may grow, before any is stored.

    Raises:
        InvalidRequestError: The set is immutable and has other content, or it has and is to become immutable.
        SetUnavailableError: The store does not answer.
    """
    expected = request.expected_digest
    if expected and not request.immutable:
        raise InvalidRequestError("expected_digest", "goes with immutable; set that too, or leave it out")
    if expected and _DIGEST.fullmatch(expected) is None:
        raise InvalidRequestError("expected_digest", "must be 32 hex digits")
    expected = expected.lower()
    sets = context.ports.reference_sets
    sealed = _stored_entries(await sets.seal_of(reference_set))
    if not request.immutable and not sealed:
        return ""
    wanted = expected
    if not wanted:
        wanted = await asyncio.to_thread(digest_entries, entries) if request.immutable and entries else sealed
    if not wanted:
        raise InvalidRequestError("entries", "an immutable set needs at least one")
    if sealed and sealed != wanted:
        message = f"{quoted(reference_set)} is immutable with the corpus {sealed}, this is {wanted}; use another name"
        raise InvalidRequestError("reference_set", message)
    known = await _known_entries(context, reference_set)
    digest = await digest_of(tuple(known))
    nothing_else, all_given = await asyncio.to_thread(_compared, known, entries)
    is_foreign = not (sealed or digest == wanted or nothing_else)
    may_grow = request.immutable and digest != wanted
    if is_foreign or not (may_grow or all_given):
        raise InvalidRequestError(
            "reference_set",
            f"{quoted(reference_set)} has {len(known)} entries with the digest {digest}, and what stays as it is has "
            f"the digest {wanted}; use another name",
        )
    if not sealed:
        _stored_entries(await sets.seal(reference_set, wanted))
    return wanted


async def check_complete(context: RequestContext, reference_set: str, seal: str) -> str:
    """The digest of an immutable set that is complete.

    Raises:
        InvalidRequestError: It is not what it was sealed as.
        SetUnavailableError: The store does not answer.
    """
    found = await context.scorer.corpus_digest(reference_set)
    if isinstance(found, Failure) and found.status is Status.NOT_PREPARED:
        raise InvalidRequestError("reference_set", f"{quoted(reference_set)} is not whole: {found.message}")
    found = _stored_entries(found)
    if found != seal:
        raise InvalidRequestError(
            "reference_set", f"{quoted(reference_set)} was to have the corpus {seal} and has {found}"
        )
    return found


async def _known_entries(context: RequestContext, reference_set: str) -> AbstractSet[_Entry]:
    """Return the entries of a set; none where it is not there yet."""
    there = await context.ports.reference_sets.entries(reference_set)
    if isinstance(there, Failure) and there.status is Status.NOT_PREPARED:
        return frozenset()
    return await asyncio.to_thread(frozenset, _stored_entries(there))


def _compared(known: AbstractSet[_Entry], entries: Sequence[ReferenceEntry]) -> tuple[bool, bool]:
    """Return whether a set holds no other entries than these, and whether it holds all of them."""
    given = set(entries_of((entry.question, entry.references) for entry in entries))
    return known <= given, given <= known


def _stored_entries(found: T | Failure) -> T:
    """Return what a store answered; raise where it did not."""
    if not isinstance(found, Failure):
        return found
    if found.status is Status.INVALID_INPUT:
        raise InvalidRequestError("reference_set", found.message.removeprefix("reference_set: "))
    raise SetUnavailableError(found.message)


@dataclass(frozen=True, slots=True)
class Generation:
    """The judge and the prompt that write missing synthetic answers, and their provenance."""

    writing: WritingSettings
    provenance: types_pb2.Provenance

    @property
    def digests(self) -> tuple[str, str]:
        """Digests of judge and prompt; answers by another judge or prompt belong to another set."""
        return self.provenance.model_digest, self.provenance.prompt_digest


async def plan_generation(context: RequestContext, request: references_pb2.PrepareRequest) -> Generation | None:
    """Reads how a request wants synthetic answers written; None where it wants none.

    Raises:
        InvalidRequestError: The judge's name or the prompt cannot be understood.
        NothingLoadedError: The judge is not there.
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
        raise InvalidRequestError("generate.prompt", f"{prompt.title} has no table [variants.{FIRST}]")
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
    reading = read_in_turns(request.entries, partial(read_entry, limits=context.limits))
    read = [entry async for _, entry in reading]
    if request.immutable:
        await asyncio.to_thread(check_whole, read)
    entries = [entry for entry in read if isinstance(entry, ReferenceEntry)]
    positions = [index for index, entry in enumerate(read) if isinstance(entry, ReferenceEntry)]
    written_by = generation.digests if generation else ()
    progress = references_pb2.PrepareProgress(
        reference_set=named or await asyncio.to_thread(name_set, entries, written_by),  # takes long for thousands
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
            await asyncio.sleep(0)
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
