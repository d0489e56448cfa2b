"""Load, latency and cache hits at a moment, out of the figures that Prometheus reads."""

import math
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.metrics_core import Metric
from prometheus_client.samples import Sample

from gradewire_proto.conventions.services import MONITORING
from gradewire_proto.v1 import monitoring_pb2
from gradewire_server.rpc.lifecycle import Lifecycle

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
