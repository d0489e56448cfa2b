"""What a caller may do: the scopes of its token, and its tenant's quota of text."""

from collections.abc import Iterable
from typing import Any

from gradewire_proto.v1 import references_pb2
from gradewire_proto.v1.types_pb2 import MetricSpec
from gradewire_server.domain.caller import Caller, Scope
from gradewire_server.requests.admission.slowed import SlowedMessages
from gradewire_server.requests.context import RequestContext
from gradewire_server.requests.errors import OverloadedError, QuotaExceededError
from gradewire_server.rpc.call import Method
from gradewire_server.rpc.errors import PermissionDeniedError
from gradewire_server.tenants.quota import text_tokens


def check_scope(caller: Caller, method: Method[Any]) -> None:
    """Raises PermissionDeniedError where a token is not good for a method."""
    if method.scope is not None and method.scope not in caller.scopes:
        raise _denied(caller, method.name, method.scope)


def check_judges(context: RequestContext, caller: Caller, specs: Iterable[MetricSpec], path: str = "metrics") -> None:
    """Raises PermissionDeniedError where a metric asks a judge and the token is not good for that."""
    if Scope.JUDGE in caller.scopes:
        return
    for index, spec in enumerate(specs):
        name = spec.WhichOneof("metric") or ""
        metric = context.metrics.get(name)
        if metric is not None and metric.info.asks_judge:
            raise _denied(caller, f"{path}[{index}].{name}", Scope.JUDGE)


def check_asking(caller: Caller, path: str) -> None:
    """Raises PermissionDeniedError where a judge is to compare or to write and the token is not good for that."""
    if Scope.JUDGE not in caller.scopes:
        raise _denied(caller, path, Scope.JUDGE)


def check_generation(caller: Caller, request: references_pb2.PrepareRequest) -> None:
    """Raises PermissionDeniedError where a judge is to write and the token is not good for that."""
    if request.HasField("generate") and Scope.JUDGE not in caller.scopes:
        raise _denied(caller, "generate", Scope.JUDGE)


def charge(caller: Caller, size_bytes: int) -> None:
    """Draws a message from the tenant's quota; raises QuotaExceededError where too little of it is left."""
    if caller.quota is not None:
        pause_s = caller.quota.take(text_tokens(size_bytes))
        if pause_s > 0:
            raise QuotaExceededError(
                f"tenant {caller.key} has used up its quota of text (quota_tokens_per_minute); this message counts for "
                f"{text_tokens(size_bytes)} tokens",
                retry_after_s=pause_s,
            )


async def charge_stream(caller: Caller, size_bytes: int, slowed: SlowedMessages) -> None:
    """Draws a message of a stream from the tenant's quota, as soon as that has room for it.

    Args:
        caller: Of the tenant.
        size_bytes: Of the message.
        slowed: Room for messages that wait here: while they do, they take nothing of what others need.

    Raises:
        QuotaExceededError: Too many of the tenant's messages wait already, or of all tenants'.
    """
    quota, tokens = caller.quota, text_tokens(size_bytes)
    if quota is None or quota.take_in_turn(tokens):
        return
    try:
        with slowed.hold(caller.key, size_bytes):
            await quota.wait(tokens)
    except OverloadedError as error:
        raise QuotaExceededError(
            f"tenant {caller.key} has used up its quota of text (quota_tokens_per_minute), and too many messages of "
            "streams wait for it; send on fewer streams, or come back later",
            retry_after_s=error.retry_after_s,
        ) from None


def _denied(caller: Caller, what: str, scope: Scope) -> PermissionDeniedError:
    good_for = ", ".join(sorted(caller.scopes))
    return PermissionDeniedError(
        f"{what}: needs a token with the scope {scope}; this one of {caller.key} has {good_for}"
    )
