"""What can go wrong with Triton, and what each of these means to a caller, to the breaker and to the operator."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from gradewire_server.domain.ports import REPLACED
from gradewire_server.domain.result import Failure, Status


class Fault(StrEnum):
    """Kinds of errors; also the label of the counter of failed inferences."""

    UNREACHABLE = "unreachable"
    NOT_READY = "not_ready"
    QUEUE_FULL = "queue_full"
    QUEUE_TIMEOUT = "queue_timeout"
    LATE = "late"
    DENIED = "denied"
    REFUSED = "refused"
    FAILED = "failed"
    WRONG_ANSWER = "wrong_answer"
    REPLACED = "replaced"


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a kind of error means.

    Attributes:
        failure: What callers are told; says whether to try again, and nothing of the inside.
        breaks: Whether it counts for the breaker: another inference would most likely fail alike.
    """

    failure: Failure
    breaks: bool


def _unavailable(message: str) -> Failure:
    return Failure(Status.UNAVAILABLE, message)


MEANINGS: Final[dict[Fault, Meaning]] = {
    Fault.UNREACHABLE: Meaning(_unavailable("the encoder's Triton server cannot be reached; try again"), breaks=True),
    Fault.NOT_READY: Meaning(_unavailable("Triton does not have the model ready; try again"), breaks=True),
    Fault.QUEUE_FULL: Meaning(_unavailable("Triton's queue is full; try again later"), breaks=False),
    Fault.QUEUE_TIMEOUT: Meaning(
        _unavailable("Triton kept this in its queue for longer than it allows; try again later"), breaks=False
    ),
    Fault.LATE: Meaning(_unavailable("Triton did not answer in time; try again"), breaks=True),
    Fault.DENIED: Meaning(
        _unavailable("Triton refuses this server's credentials; trying again helps once its operator has set them"),
        breaks=True,
    ),
    Fault.REFUSED: Meaning(
        Failure(Status.INTERNAL, "Triton refused a request of the engine's; trying again does not help"), breaks=True
    ),
    Fault.FAILED: Meaning(_unavailable("the encoder failed in Triton; try again"), breaks=True),
    Fault.WRONG_ANSWER: Meaning(
        Failure(Status.INTERNAL, "Triton answered with something else than the model's vectors"), breaks=True
    ),
    Fault.REPLACED: Meaning(REPLACED, breaks=False),
}

_BY_CODE: Final = {
    "UNAVAILABLE": Fault.UNREACHABLE,
    "CANCELLED": Fault.UNREACHABLE,  # by the other side: ours raises asyncio's own error
    "NOT_FOUND": Fault.NOT_READY,
    "DEADLINE_EXCEEDED": Fault.LATE,
    "RESOURCE_EXHAUSTED": Fault.QUEUE_FULL,
    "UNAUTHENTICATED": Fault.DENIED,
    "PERMISSION_DENIED": Fault.DENIED,
    "INVALID_ARGUMENT": Fault.REFUSED,
}
# Triton says UNAVAILABLE for several things; its words tell them apart.
_BY_WORDS: Final = (
    ("maximum queue size", Fault.QUEUE_FULL),
    ("timeout expired", Fault.QUEUE_TIMEOUT),
    ("not ready", Fault.NOT_READY),
    ("no available versions", Fault.NOT_READY),
    ("stopping", Fault.NOT_READY),
    ("unloading", Fault.NOT_READY),
)

OVERLOAD: Final = frozenset({Fault.QUEUE_FULL, Fault.QUEUE_TIMEOUT})
"""More to do than can be done in time; nothing is wrong with the model while it does something."""


class TritonError(Exception):
    """A call of Triton's went wrong.

    Attributes:
        kind: What it is.
        meaning: What follows from it.
    """

    def __init__(self, kind: Fault, detail: str) -> None:
        super().__init__(detail)
        self.kind = kind
        self.meaning = MEANINGS[kind]


def kind_of(code: str, message: str) -> Fault:
    """Which kind a gRPC status is.

    Args:
        code: Its name, e.g. ``"UNAVAILABLE"``.
        message: Its details.
    """
    if code in {"UNAVAILABLE", "CANCELLED"}:
        for words, kind in _BY_WORDS:
            if words in message:
                return kind
    return _BY_CODE.get(code, Fault.FAILED)


def kind_of_words(message: str) -> Fault:
    """Which kind an answer's error within a stream is, which has no status."""
    if "unknown model" in message or "unavailable due to" in message:
        return Fault.NOT_READY
    return next((kind for words, kind in _BY_WORDS if words in message), Fault.FAILED)
