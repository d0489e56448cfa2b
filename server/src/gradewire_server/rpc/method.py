"""Descriptions of gRPC methods, and calls in progress."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Generic, TypeVar

from google.protobuf.message import Message

from gradewire_proto.v1 import types_pb2
from gradewire_server.domain.caller import LOCAL, Caller, Scope
from gradewire_server.requests.context import RequestContext
from gradewire_server.rpc.errors import PermissionDeniedError
from gradewire_server.rpc.log import CallRecord
from gradewire_server.rpc.telemetry import MethodTelemetry

RequestT = TypeVar("RequestT", bound=Message)


@dataclass(frozen=True, slots=True)
class Method(Generic[RequestT]):
    """A gRPC method, for example ``gradewire.v1.Scoring/Score``. A field path is "" if requests have no such field.

    Attributes:
        scope: The scope that a token needs, or None if no scope is needed.
        rows: The field path of the items, pairs, questions or entries.
        judges: If every request needs a judge, the field path for errors about a missing scope.
        may_judge: The name of a field. Requests with this field need a judge.
        metric: The metric's name if all requests use the same metric.
    """

    name: str
    request_type: type[RequestT]
    scope: Scope | None = None
    rows: str = ""
    metrics: str = ""
    judges: str = ""
    may_judge: str = ""
    metric: str = ""

    def check_scope(self, caller: Caller) -> None:
        """Raise PermissionDeniedError if the caller's token does not allow the method."""
        if self.scope is not None and self.scope not in caller.scopes:
            raise _denied(caller, self.name, self.scope)

    def row_count(self, request: RequestT) -> int:
        """Return the number of items, pairs, questions or entries. A judge request without such a field counts as 1."""
        return len(attrgetter(self.rows)(request)) if self.rows else int(bool(self.judges))

    def specs(self, request: RequestT) -> Sequence[types_pb2.MetricSpec]:
        """Return the request's metrics."""
        found: Sequence[types_pb2.MetricSpec] = attrgetter(self.metrics)(request) if self.metrics else ()
        return found


@dataclass(slots=True, eq=False)
class RpcCall:
    """A call in progress.

    Attributes:
        deadline_s: The seconds from the call's start to its deadline, or None without a deadline.
        waited_s: The seconds that the call waited for its first step, or None if not measured.
        caller: The caller, or `LOCAL` until the token is checked.
    """

    record: CallRecord
    telemetry: MethodTelemetry
    deadline_s: float | None
    waited_s: float | None = None
    caller: Caller = LOCAL

    def see(self, method: Method[Any], request: Any, context: RequestContext) -> None:
        """Record a message's items and metrics.

        Raises:
            PermissionDeniedError: The message needs a judge, but the token lacks the scope for judges.
        """
        if count := method.row_count(request):
            self.record.items += count
            self.telemetry.items.inc(count)
        specs = method.specs(request)
        if specs:
            self.record.metrics = [spec.WhichOneof("metric") or "?" for spec in specs]
        elif method.metric:
            self.record.metrics = [method.metric]
        if Scope.JUDGE in self.caller.scopes:
            return
        for index, spec in enumerate(specs):
            name = spec.WhichOneof("metric") or ""
            if name in context.metrics and context.metrics[name].info.asks_judge:
                raise _denied(self.caller, f"{method.metrics}[{index}].{name}", Scope.JUDGE)
        judges = method.judges or (method.may_judge and request.HasField(method.may_judge) and method.may_judge)
        if judges:
            raise _denied(self.caller, judges, Scope.JUDGE)

    def saw_request(self, size_bytes: int) -> None:
        """Record a received message's size."""
        self.telemetry.request_bytes.observe(size_bytes)
        self.telemetry.tenants.sent(self.caller, size_bytes)
        self.record.request_bytes += size_bytes

    def saw_reply(self, size_bytes: int) -> None:
        """Record a sent message's size."""
        self.telemetry.reply_bytes.observe(size_bytes)
        self.record.reply_bytes += size_bytes


def _denied(caller: Caller, what: str, scope: Scope) -> PermissionDeniedError:
    good_for = ", ".join(sorted(caller.scopes))
    return PermissionDeniedError(
        f"{what}: needs a token with the scope {scope}; the token of {caller.key} has only {good_for}"
    )


def run_sized(name: str) -> Callable[[Any, Any, RpcCall], Awaitable[Message]]:
    """Return a function that calls the unary handler `name`."""

    def run(handlers: Any, request: Any, call: RpcCall) -> Awaitable[Message]:
        handler: Callable[..., Awaitable[Message]] = getattr(handlers, name)
        return handler(request, deadline_s=call.deadline_s, size_bytes=call.record.request_bytes, caller=call.caller)

    return run


def run_stream(name: str) -> Callable[[Any, Any, RpcCall], AsyncGenerator[Message]]:
    """Return a function that calls the streaming handler `name`."""

    def run(handlers: Any, requests: Any, call: RpcCall) -> AsyncGenerator[Message]:
        handler: Callable[..., AsyncGenerator[Message]] = getattr(handlers, name)
        return handler(requests, deadline_s=call.deadline_s, caller=call.caller)

    return run
