"""PrepareRequest.immutable: a set that is what its digest says, for ever.

What goes through all entries runs on a thread: of thousands of them it takes a few hundred milliseconds.
"""

import asyncio
import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final, Self, TypeAlias, TypeVar

from gradewire_proto.conventions.reference_sets import digest_entries
from gradewire_proto.v1 import references_pb2
from gradewire_server.domain.item import ReferenceEntry
from gradewire_server.domain.quoting import quoted
from gradewire_server.domain.result import Failure, Status
from gradewire_server.metrics.checks import check_references
from gradewire_server.requests.context import RequestContext
from gradewire_server.requests.errors import InvalidRequestError, SetUnavailableError
from gradewire_server.scoring.corpus import entries_of
from gradewire_server.scoring.corpus_digests import digest_of

T = TypeVar("T")
_Entry: TypeAlias = tuple[str, tuple[str, ...]]
_DIGEST: Final = re.compile(r"[0-9a-fA-F]{32}")


def check_whole(read: Sequence[ReferenceEntry | Failure]) -> None:
    """Raises InvalidRequestError where an entry cannot be a part of a set: an immutable one must be whole."""
    for index, entry in enumerate(read):
        failure = entry if isinstance(entry, Failure) else check_references(entry.references)
        if failure is not None:
            raise InvalidRequestError(f"entries[{index}]", f"{failure.message}; an immutable set must be whole")


@dataclass(frozen=True, slots=True)
class _Claim:
    """What a set is to be.

    Attributes:
        digest: Of its corpus.
        is_sealed: Whether that was said before this call.
        adds: Whether this call is a part of the preparation that the set is sealed for.
    """

    digest: str
    is_sealed: bool
    adds: bool


async def admit(
    context: RequestContext,
    request: references_pb2.PrepareRequest,
    reference_set: str,
    entries: Sequence[ReferenceEntry],
) -> str:
    """Says whether entries may go into a set, before any is stored; an immutable one is claimed for its content.

    Returns:
        What the set is sealed with; "" for one that may grow.

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
    sealed = _there(await sets.seal_of(reference_set))
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
    claim = _Claim(wanted, is_sealed=bool(sealed), adds=request.immutable)
    await _check_content(context, reference_set, entries, claim)
    if not sealed:
        _there(await sets.seal(reference_set, wanted))
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
    found = _there(found)
    if found != seal:
        raise InvalidRequestError(
            "reference_set", f"{quoted(reference_set)} was to have the corpus {seal} and has {found}"
        )
    return found


async def _check_content(
    context: RequestContext, reference_set: str, entries: Sequence[ReferenceEntry], claim: _Claim
) -> None:
    """Raises where entries must not be added to what the set holds, or the set holds what it must not."""
    there = await context.ports.reference_sets.entries(reference_set)
    is_empty = isinstance(there, Failure) and there.status is Status.NOT_PREPARED
    known = frozenset() if is_empty else await asyncio.to_thread(frozenset, _there(there))
    digest = await digest_of(tuple(known))
    is_complete = digest == claim.digest
    may_add = claim.adds and not is_complete
    holds = await asyncio.to_thread(_Holds.of, known, entries)
    is_foreign = not (claim.is_sealed or is_complete or holds.nothing_else)
    if is_foreign or not (may_add or holds.all_given):
        raise InvalidRequestError(
            "reference_set",
            f"{quoted(reference_set)} has {len(known)} entries with the digest {digest}, and what stays as it is has "
            f"the digest {claim.digest}; use another name",
        )


@dataclass(frozen=True, slots=True)
class _Holds:
    """What a set holds of the entries that are given.

    Attributes:
        nothing_else: It has no other entries.
        all_given: It has all of them.
    """

    nothing_else: bool
    all_given: bool

    @classmethod
    def of(cls, known: AbstractSet[_Entry], entries: Sequence[ReferenceEntry]) -> Self:
        given = set(entries_of((entry.question, entry.references) for entry in entries))
        return cls(nothing_else=known <= given, all_given=given <= known)


def _there(found: T | Failure) -> T:
    """What a store answered; raises where it did not."""
    if not isinstance(found, Failure):
        return found
    if found.status is Status.INVALID_INPUT:
        raise InvalidRequestError("reference_set", found.message.removeprefix("reference_set: "))
    raise SetUnavailableError(found.message)
