"""The methods of our services: each notes for log and metrics what the request asks, and calls its handler."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, TypeAlias

from gradewire_proto.conventions.services import JUDGING, MODELS, MONITORING, REFERENCES, SCORING
from gradewire_proto.v1 import judging_pb2, models_pb2, references_pb2, scoring_pb2
from gradewire_proto.v1.monitoring_pb2 import SnapshotRequest, SnapshotResponse
from gradewire_server.domain.caller import Scope
from gradewire_server.requests.handlers import Handlers
from gradewire_server.rpc.access.scopes import check_asking, check_generation, check_judges
from gradewire_server.rpc.call import Method, RpcCall
from gradewire_server.rpc.calls import Calls
from gradewire_server.rpc.monitoring.snapshots import Snapshots

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import grpc

Services: TypeAlias = Mapping[str, Mapping[str, "grpc.RpcMethodHandler[Any, Any]"]]
"""Handlers by service and method."""


def service_handlers(calls: Calls, snapshots: Snapshots) -> Services:
    """The method handlers of all our services."""
    return {
        SCORING: {
            "Score": calls.unary(Method(f"{SCORING}/Score", scoring_pb2.ScoreRequest, Scope.SCORE), _score),
            "ScoreStream": calls.bidirectional(
                Method(f"{SCORING}/ScoreStream", scoring_pb2.ScoreStreamRequest, Scope.SCORE), _score_stream
            ),
        },
        JUDGING: {
            "Compare": calls.unary(Method(f"{JUDGING}/Compare", judging_pb2.CompareRequest, Scope.SCORE), _compare),
            "CompareStream": calls.bidirectional(
                Method(f"{JUDGING}/CompareStream", judging_pb2.CompareStreamRequest, Scope.SCORE), _compare_stream
            ),
            "Decide": calls.unary(Method(f"{JUDGING}/Decide", judging_pb2.DecideRequest, Scope.SCORE), _decide),
            "Complete": calls.unary(Method(f"{JUDGING}/Complete", judging_pb2.CompleteRequest, Scope.SCORE), _complete),
        },
        REFERENCES: {
            "Prepare": calls.server_stream(
                Method(f"{REFERENCES}/Prepare", references_pb2.PrepareRequest, Scope.PREPARE), _prepare
            )
        },
        MODELS: {"List": calls.unary(Method(f"{MODELS}/List", models_pb2.ListModelsRequest), _list)},
        MONITORING: {
            "Snapshot": calls.unary(
                Method(f"{MONITORING}/Snapshot", SnapshotRequest, Scope.ADMIN), _snapshot(snapshots)
            )
        },
    }


async def _score(handlers: Handlers, request: scoring_pb2.ScoreRequest, call: RpcCall) -> scoring_pb2.ScoreResponse:
    call.saw_items(len(request.items))
    call.saw_metrics(request.metrics)
    check_judges(handlers.context, call.caller, request.metrics)
    return await handlers.score(
        request, deadline_s=call.deadline_s, size_bytes=call.record.request_bytes, caller=call.caller
    )


async def _score_stream(
    handlers: Handlers, requests: AsyncIterator[scoring_pb2.ScoreStreamRequest], call: RpcCall
) -> AsyncGenerator[scoring_pb2.ScoreStreamResponse]:
    async def seen() -> AsyncGenerator[scoring_pb2.ScoreStreamRequest]:
        async for request in requests:
            if request.WhichOneof("kind") == "config":
                call.saw_metrics(request.config.metrics)
                check_judges(handlers.context, call.caller, request.config.metrics, "config.metrics")
            else:
                call.saw_items(len(request.items.items))
            yield request
            del request  # as in `read_messages`

    async with (
        aclosing(seen()) as counted,
        aclosing(handlers.score_stream(counted, deadline_s=call.deadline_s, caller=call.caller)) as replies,
    ):
        async for reply in replies:
            yield reply


async def _compare(
    handlers: Handlers, request: judging_pb2.CompareRequest, call: RpcCall
) -> judging_pb2.CompareResponse:
    call.saw_items(len(request.pairs))
    call.saw_comparison()
    check_asking(call.caller, "parameters")
    return await handlers.compare(
        request, deadline_s=call.deadline_s, size_bytes=call.record.request_bytes, caller=call.caller
    )


async def _complete(
    handlers: Handlers, request: judging_pb2.CompleteRequest, call: RpcCall
) -> judging_pb2.CompleteResponse:
    call.saw_items(1)
    check_asking(call.caller, "turns")
    return await handlers.complete(
        request, deadline_s=call.deadline_s, size_bytes=call.record.request_bytes, caller=call.caller
    )


async def _decide(handlers: Handlers, request: judging_pb2.DecideRequest, call: RpcCall) -> judging_pb2.DecideResponse:
    call.saw_items(len(request.questions))
    check_asking(call.caller, "questions")
    return await handlers.decide(
        request, deadline_s=call.deadline_s, size_bytes=call.record.request_bytes, caller=call.caller
    )


async def _compare_stream(
    handlers: Handlers, requests: AsyncIterator[judging_pb2.CompareStreamRequest], call: RpcCall
) -> AsyncGenerator[judging_pb2.CompareStreamResponse]:
    async def seen() -> AsyncGenerator[judging_pb2.CompareStreamRequest]:
        async for request in requests:
            call.saw_items(len(request.pairs.pairs))
            yield request
            del request  # as in `read_messages`

    call.saw_comparison()
    check_asking(call.caller, "config.parameters")
    async with (
        aclosing(seen()) as counted,
        aclosing(handlers.compare_stream(counted, deadline_s=call.deadline_s, caller=call.caller)) as replies,
    ):
        async for reply in replies:
            yield reply


def _prepare(
    handlers: Handlers, request: references_pb2.PrepareRequest, call: RpcCall
) -> AsyncGenerator[references_pb2.PrepareProgress]:
    call.saw_items(len(request.entries))
    call.saw_metrics(request.metrics)
    check_judges(handlers.context, call.caller, request.metrics)
    check_generation(call.caller, request)
    return handlers.prepare(request, deadline_s=call.deadline_s, caller=call.caller)


async def _list(
    handlers: Handlers, request: models_pb2.ListModelsRequest, call: RpcCall
) -> models_pb2.ListModelsResponse:
    del request, call
    return await handlers.list_models()


def _snapshot(snapshots: Snapshots) -> "Callable[[Handlers, object, RpcCall], Awaitable[SnapshotResponse]]":
    async def snapshot(_handlers: Handlers, _request: object, _call: RpcCall) -> SnapshotResponse:
        return await snapshots.take()

    return snapshot
