"""The methods of our services: count what a request contains and call its handler; and snapshots of load."""

import math
import time
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.metrics_core import Metric
from prometheus_client.samples import Sample

from gradewire_proto.v1 import judging_pb2, models_pb2, monitoring_pb2, references_pb2, scoring_pb2
from gradewire_proto.v1.monitoring_pb2 import SnapshotRequest, SnapshotResponse
from gradewire_proto.wire_rules import JUDGING, MODELS, MONITORING, REFERENCES, SCORING
from gradewire_server.domain.caller import Scope
from gradewire_server.requests.handlers import Handlers
from gradewire_server.rpc.call import Method, RpcCall, check_asking, check_generation, check_judges
from gradewire_server.rpc.calls import Calls, Lifecycle

if TYPE_CHECKING:
    import grpc


_CALLS: Final = "gradewire_calls_total"
_IN_FLIGHT: Final = "gradewire_calls_in_flight"
_BUCKETS: Final = "gradewire_call_duration_seconds_bucket"
_ITEMS: Final = "gradewire_items_total"
_ITEMS_IN_FLIGHT: Final = "gradewire_items_in_flight"
_TEXTS: Final = "gradewire_engine_texts_total"
_WAIT: Final = "gradewire_admission_wait_seconds"
_OVERLOAD: Final = "gradewire_overload_seconds"
_JUDGE_QUEUE: Final = "gradewire_judge_queue_items"
_CACHE: Final = "gradewire_engine_memory_bytes"
_RESIDENT: Final = "process_resident_memory_bytes"
READ: Final = (
    _CALLS,
    _IN_FLIGHT,
    _BUCKETS,
    _ITEMS,
    _ITEMS_IN_FLIGHT,
    _TEXTS,
    _WAIT,
    _OVERLOAD,
    _JUDGE_QUEUE,
    _CACHE,
)
"""Names of the samples that are read; tests hold them against the page of figures, and that against the server."""


class Snapshots:
    """Takes them; made once, and used on the server's event loop.

    Args:
        registry: Of all figures.
        lifecycle: Knows the phase, and what is degraded.
        together: Gives the figures of all processes, where several serve; None: `registry` has them all.
    """

    def __init__(
        self,
        registry: CollectorRegistry,
        lifecycle: Lifecycle,
        together: Callable[[], Awaitable[list[Metric]]] | None = None,
    ) -> None:
        self._together = together
        self._registry = registry.restricted_registry(READ)
        self._process = ProcessCollector(registry=None)
        self._lifecycle = lifecycle

    async def take(self) -> monitoring_pb2.SnapshotResponse:
        """One of now; figures of a part that is not there (no judge, no cache) are 0."""
        if self._together is None:
            samples = _by_name([*self._registry.collect(), *self._process.collect()])
        else:
            samples = _by_name(await self._together())
        calls = samples[_CALLS]
        bounds, counts = _buckets(samples[_BUCKETS])
        report = self._lifecycle.report()
        return monitoring_pb2.SnapshotResponse(
            at_s=time.monotonic(),
            phase=report["phase"],
            degraded=report["degraded"],
            calls=_sum(calls),
            failed_calls=_sum(one for one in calls if one.labels["code"] != "OK"),
            calls_in_flight=_sum(samples[_IN_FLIGHT]),
            items=_sum(samples[_ITEMS]),
            items_in_flight=_sum(samples[_ITEMS_IN_FLIGHT]),
            latency_bounds_s=bounds,
            latency_counts=counts,
            texts_by_source={one.labels["source"]: int(one.value) for one in samples[_TEXTS]},
            admission_wait_s=_number(samples[_WAIT]),
            overload_s=_number(samples[_OVERLOAD]),
            judge_queue_items=_sum(samples[_JUDGE_QUEUE]),
            cache_bytes=_sum(samples[_CACHE]),
            resident_bytes=_sum(samples[_RESIDENT]),
        )


def _by_name(metrics: Iterable[Metric]) -> defaultdict[str, list[Sample]]:
    """Samples by name, without those of the calls that ask for them."""
    found: defaultdict[str, list[Sample]] = defaultdict(list)
    for metric in metrics:
        for sample in metric.samples:
            if not sample.labels.get("method", "").startswith(f"{MONITORING}/"):
                found[sample.name].append(sample)
    return found


def _number(samples: Iterable[Sample]) -> float:
    return sum(sample.value for sample in samples if math.isfinite(sample.value))


def _sum(samples: Iterable[Sample]) -> int:
    return max(0, int(_number(samples)))


def _buckets(samples: Iterable[Sample]) -> tuple[list[float], list[int]]:
    """Bounds without the infinite one, and the calls of each bucket of all methods together."""
    up_to: defaultdict[float, float] = defaultdict(float)
    for sample in samples:
        up_to[float(sample.labels["le"])] += sample.value
    bounds = sorted(up_to)
    counts = [
        int(up_to[bound] - up_to.get(before, 0.0)) for before, bound in zip([-1.0, *bounds], bounds, strict=False)
    ]
    return [bound for bound in bounds if math.isfinite(bound)], counts


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
