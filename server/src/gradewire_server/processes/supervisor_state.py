"""The combined state of all processes for /healthz, /readyz and /metrics."""

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from prometheus_client import CollectorRegistry, Counter, Gauge
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from typing_extensions import override

from gradewire_server.process import Phase
from gradewire_server.processes.process_connection import MetricsJson, add_up, to_json
from gradewire_server.processes.server_process import ServerProcess

if TYPE_CHECKING:
    from gradewire_server.processes.http_gateway import GatewaySupervisor
    from gradewire_server.processes.server_process import Worker


_BEAT_EVERY_S: Final = 0.25
_REFRESH_EVERY_S: Final = 5.0
_COLLECT_S: Final = 5.0
_COUNTED_KINDS: Final = frozenset({"counter", "histogram", "summary"})


class SupervisorTelemetry:
    """The supervisor's own metrics. `ready` returns the number of processes that accept calls."""

    def __init__(self, registry: CollectorRegistry, ready: Callable[[], int]) -> None:
        counter = partial(Counter, registry=registry)
        self.judge_host_restarts = counter(
            "gradewire_judge_host_restarts",
            "Restarts of a lost judge host, which runs the judges for all server processes.",
        )
        self.restarts = counter("gradewire_process_restarts", "Restarts of lost server processes.")
        self.gateway_restarts = counter("gradewire_gateway_restarts", "Restarts of a lost HTTP gateway.")
        Gauge("gradewire_processes_ready", "Server processes that accept calls.", registry=registry).set_function(ready)


class SupervisorState(Collector):
    """The health and metrics of all processes. Any thread may use `report`, `ready`, `phase` and `collect`."""

    def __init__(self, own: CollectorRegistry) -> None:
        self.workers: Sequence[Worker] = ()
        self.judge_host: Worker | None = None
        self.phase = Phase.LOADING
        self.gateway: GatewaySupervisor | None = None
        self._own = own
        self._ended: MetricsJson = []
        self._loop = asyncio.get_running_loop()
        self._beat_s = time.monotonic()

    @property
    def ready(self) -> bool:
        """True if all processes have loaded once and at least one process is ready now."""
        return self.phase is Phase.SERVING and any(worker.ready for worker in self.workers)

    @property
    def all_workers(self) -> "tuple[Worker, ...]":
        """The server processes' workers, then the judge host's worker if there is one."""
        return (*self.workers,) if self.judge_host is None else (*self.workers, self.judge_host)

    def report(self) -> dict[str, Any]:
        """Return the state for /healthz."""
        reports = [
            worker.process.report for worker in self.workers if worker.process is not None and worker.process.report
        ]
        # A serving process reports its own problems.
        degraded = [worker.trouble for worker in self.all_workers if not worker.serves and self.phase is Phase.SERVING]
        if self.gateway is not None and self.gateway.trouble:
            degraded.append(self.gateway.trouble)
        degraded += [each for report in reports for each in report["degraded"]]
        judging = [report["judging"] for report in reports if report["judging"] is not None]
        return {
            "phase": self.phase.value,
            "degraded": list(dict.fromkeys(degraded)),
            "judging": any(judging) if judging else None,
            "event_loop_silent_s": round(time.monotonic() - self._beat_s, 3),
            "processes": {"wanted": len(self.workers), "ready": sum(worker.ready for worker in self.workers)},
        }

    @override
    def collect(self) -> Iterable[Metric]:
        """Return all processes' metrics. Do not call this on the event loop's thread."""
        metrics_json = asyncio.run_coroutine_threadsafe(self.metrics(), self._loop).result(_COLLECT_S)
        return add_up([metrics_json])

    async def metrics(self) -> MetricsJson:
        """Return the combined metrics of running processes, ended processes and the supervisor."""
        await self._refresh()
        running = [worker.process.metrics for worker in self.all_workers if worker.process is not None]
        shown = {"gradewire_serving": float(self.ready), "gradewire_degraded": float(len(self.report()["degraded"]))}
        metrics_json = to_json(add_up([self._ended, *running, to_json(self._own.collect())]))
        for name, _, _, _, samples in metrics_json:
            if name in shown:
                samples[:] = [[name, {}, shown[name]]]
        return metrics_json

    def process_exited(self, process: ServerProcess) -> None:
        """Keep an ended process's counts, because counters must never decrease."""
        counted = [family for family in process.metrics if family[2] in _COUNTED_KINDS]
        self._ended = to_json(add_up([self._ended, counted]))

    async def watch(self) -> None:
        """Record that the event loop is alive, and keep recent metrics of every process in case it is lost."""
        looked_s = 0.0
        while True:
            self._beat_s = time.monotonic()
            if self._beat_s - looked_s > _REFRESH_EVERY_S:
                looked_s = self._beat_s
                await self._refresh()
            await asyncio.sleep(_BEAT_EVERY_S)

    async def _refresh(self) -> None:
        processes = [worker.process for worker in self.all_workers if worker.process is not None]
        await asyncio.gather(*(process.refresh() for process in processes if process.report))
