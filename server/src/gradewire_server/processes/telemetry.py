"""Figures of the supervisor itself."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge


class SupervisorTelemetry:
    """Registers them.

    Args:
        registry: Where.
        ready: How many processes take calls now.
    """

    def __init__(self, registry: CollectorRegistry, ready: Callable[[], int]) -> None:
        self.judge_host_restarts = Counter(
            "gradewire_judge_host_restarts",
            "Processes that run the judges of all server processes, lost and started again.",
            registry=registry,
        )
        self.restarts = Counter(
            "gradewire_process_restarts", "Server processes that were lost and started again.", registry=registry
        )
        self.gateway_restarts = Counter(
            "gradewire_gateway_restarts", "HTTP gateways that were lost and started again.", registry=registry
        )
        Gauge("gradewire_processes_ready", "Server processes that take calls.", registry=registry).set_function(ready)
