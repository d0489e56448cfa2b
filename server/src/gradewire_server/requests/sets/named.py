"""The reference set that a request names: NAME, or NAME@DIGEST where its corpus must be that one."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from gradewire_proto.conventions.reference_sets import split_pin
from gradewire_server.domain.quoting import quoted
from gradewire_server.domain.result import Failure, Status
from gradewire_server.requests.context import RequestContext
from gradewire_server.requests.convert import read_reference_set
from gradewire_server.requests.errors import InvalidRequestError, SetUnavailableError
from gradewire_server.requests.planning.metric_plan import MetricPlan


@dataclass(frozen=True, slots=True)
class NamedSet:
    """The set of a call that scores.

    Attributes:
        name: Without a digest; empty where the request names none.
        corpus_digest: Of its corpus as the call begins, 32 hex digits; empty where no metric counts over one, or there
            is none.
    """

    name: str
    corpus_digest: str = ""


_NO_SET: Final = NamedSet("")


async def find_set(
    context: RequestContext, written: str, plans: Iterable[MetricPlan], path: str = "reference_set"
) -> NamedSet:
    """Reads the name of a set, and finds out which corpus it is where that matters.

    Raises:
        InvalidRequestError: It cannot be a name, or the set has another corpus than the digest says.
        SetUnavailableError: A digest is said, and the store does not answer.
    """
    if not written:
        return _NO_SET
    name, digest = split_pin(written)
    name = read_reference_set(name, path)
    if not (digest or any(plan.counts_prepared for plan in plans)):
        return NamedSet(name)
    found = await context.scorer.corpus_digest(name)
    if not isinstance(found, Failure):
        if not found.startswith(digest):
            raise InvalidRequestError(path, f"the corpus of {quoted(name)} is {found} here, {digest} is asked for")
        return NamedSet(name, found)
    if not digest:
        return NamedSet(name)  # each result says what is wrong
    if found.status is Status.NOT_PREPARED:
        raise InvalidRequestError(
            path, f"{quoted(name)} has no whole corpus here, {digest} is asked for: {found.message}"
        )
    raise SetUnavailableError(f"{path}: {found.message}")
