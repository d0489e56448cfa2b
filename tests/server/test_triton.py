"""What Triton says, as it was heard from the real server, becomes one table of kinds and meanings."""

import pytest

from gradewire_server.domain.items import Status
from gradewire_server.triton import MEANINGS, Fault, TritonError, kind_of

HEARD = {
    ("UNAVAILABLE", "failed to connect to all addresses; last error: UNKNOWN: Connection refused"): Fault.UNREACHABLE,
    ("UNAVAILABLE", "Socket closed"): Fault.UNREACHABLE,
    ("CANCELLED", "CANCELLED"): Fault.UNREACHABLE,
    ("UNAVAILABLE", "[request id: <id_unknown>] Exceeds maximum queue size"): Fault.QUEUE_FULL,
    ("UNAVAILABLE", "Request timeout expired"): Fault.QUEUE_TIMEOUT,
    ("UNAVAILABLE", "Server is stopping, scheduler for model has stopped accepting new requests"): Fault.NOT_READY,
    ("NOT_FOUND", "Request for unknown model: 'm' is not found"): Fault.NOT_READY,
    ("NOT_FOUND", "Request for unknown model: 'm' has no available versions"): Fault.NOT_READY,
    ("DEADLINE_EXCEEDED", "Deadline Exceeded"): Fault.LATE,
    ("INTERNAL", "Stub process 'm_0' is not healthy."): Fault.FAILED,
    ("UNKNOWN", ""): Fault.FAILED,
    ("UNIMPLEMENTED", "Method not found!"): Fault.FAILED,
    ("INVALID_ARGUMENT", "unexpected inference output 'x' for model 'm'"): Fault.REFUSED,
    ("UNAUTHENTICATED", "no token"): Fault.DENIED,
    ("RESOURCE_EXHAUSTED", "too many"): Fault.QUEUE_FULL,
}


@pytest.mark.parametrize(("status", "kind"), HEARD.items(), ids=lambda value: str(value)[:40])
def test_every_status_has_a_kind(status: tuple[str, str], kind: Fault) -> None:
    assert kind_of(*status) is kind


@pytest.mark.parametrize("kind", Fault)
def test_every_kind_says_whether_to_try_again_and_nothing_of_the_inside(kind: Fault) -> None:
    failure = TritonError(kind, "secret detail at 10.0.0.1").meaning.failure
    assert failure is MEANINGS[kind].failure
    assert ("try again" in failure.message or "trying again" in failure.message) == (kind is not Fault.WRONG_ANSWER)
    assert "secret" not in failure.message
    assert (failure.status is Status.INTERNAL) == (kind in {Fault.REFUSED, Fault.WRONG_ANSWER})


def test_what_the_caller_or_the_load_is_to_blame_for_does_not_open_the_breaker() -> None:
    assert {kind for kind in Fault if not MEANINGS[kind].breaks} == {
        Fault.QUEUE_FULL,
        Fault.QUEUE_TIMEOUT,
        Fault.REPLACED,
    }
