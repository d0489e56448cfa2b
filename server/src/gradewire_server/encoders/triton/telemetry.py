"""What encoders in Triton tell Prometheus, beside what all encoders tell."""

from prometheus_client import CollectorRegistry, Counter, Gauge

from gradewire_server.concurrency.breaker import BreakerState


class TritonTelemetry:
    """Counters and gauges of the models in Triton.

    Args:
        registry: Where they are registered; one per registry.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        prefix = "gradewire_engine_triton"
        self.errors = Counter(
            f"{prefix}_inference_errors", "Inferences that failed, by kind.", ("model", "kind"), registry=registry
        )
        self.in_flight = Gauge(f"{prefix}_in_flight", "Inferences on their way.", ("model",), registry=registry)
        self.switches = Counter(
            f"{prefix}_model_switches", "Models replaced by others while running.", ("model",), registry=registry
        )
        self.repairs = Counter(
            f"{prefix}_repairs", "Loads that were asked for to mend a model.", ("model", "outcome"), registry=registry
        )
        self._breaker = Gauge(
            f"{prefix}_breaker_state", "1 for the state a model's breaker is in.", ("model", "state"), registry=registry
        )

    def set_breaker(self, model: str, state: BreakerState) -> None:
        """Shows the state of a model's breaker."""
        for each in BreakerState:
            self._breaker.labels(model, each).set(each is state)
