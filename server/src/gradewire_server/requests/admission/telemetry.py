"""What admission holds and predicts, for Prometheus."""

from prometheus_client import CollectorRegistry, Gauge

from gradewire_server.requests.admission.admission import Admission


class AdmissionTelemetry:
    """Registers the gauges; they are 0 until `expose` names an admission."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._items_in_flight = Gauge("gradewire_items_in_flight", "Items that hold a permit.", registry=registry)
        self._bytes_in_flight = Gauge(
            "gradewire_requests_in_flight_bytes", "Request bytes that hold a permit.", registry=registry
        )
        self._wait = Gauge(
            "gradewire_admission_wait_seconds",
            "What a small request would wait for now, as predicted.",
            registry=registry,
        )
        self._rate = Gauge(
            "gradewire_service_rate_tokens",
            "Tokens of text that the encoders get through in a second, as measured under load.",
            registry=registry,
        )
        self._bulk_waiting = Gauge(
            "gradewire_bulk_waiting_tokens", "Tokens of bulk work that waits for its turns.", registry=registry
        )
        self._overload = Gauge(
            "gradewire_overload_seconds",
            "How long small requests have been refused; 0 without overload.",
            registry=registry,
        )

    def expose(self, admission: Admission) -> None:
        """Shows the permits of `admission` from now on."""
        self._items_in_flight.set_function(lambda: admission.items.taken)
        self._bytes_in_flight.set_function(lambda: admission.bytes.taken)
        self._wait.set_function(lambda: admission.wait_s)
        self._rate.set_function(lambda: admission.tokens_per_s)
        self._bulk_waiting.set_function(lambda: admission.waiting_tokens)
        self._overload.set_function(lambda: admission.overload_s)
