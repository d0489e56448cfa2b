"""Prometheus metrics for encoders in this process and in Triton."""

from bisect import bisect_left
from collections import Counter as Counted
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from threading import Lock
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString
from typing_extensions import override

from gradewire_server.domain.items import Failure
from gradewire_server.domain.needs import AnswerSource
from gradewire_server.encoders.pending import PendingText
from gradewire_server.resilience import BreakerState
from gradewire_server.storage.cache import ReadCounter

_SECONDS: Final = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
_TEXTS: Final = (1, 2, 4, 8, 16, 32, 64, 128)
_TOKENS: Final = (8, 16, 32, 64, 128, 256, 512, 1024)
_PREFIX: Final = "gradewire_engine"


class CountedHistogram(Collector):
    """A histogram with the label `model`. One call adds a value any number of times. Thread-safe."""

    def __init__(self, name: str, what: str, bounds: tuple[float, ...]) -> None:
        self._name, self._what, self._bounds = name, what, bounds
        self._lock = Lock()
        self._sums: dict[str, float] = {}
        self._counts: dict[str, list[int]] = {}

    def add_model(self, model: str) -> None:
        """Export a model's samples, at first with zeros."""
        with self._lock:
            self._sums.setdefault(model, 0.0)
            self._counts.setdefault(model, [0] * (len(self._bounds) + 1))

    def observe(self, model: str, value: float, times: int) -> None:
        """Add a value `times` times. Call `add_model` first."""
        bucket = bisect_left(self._bounds, value)
        with self._lock:
            self._sums[model] += value * times
            self._counts[model][bucket] += times

    @override
    def collect(self) -> Iterable[Metric]:
        family = HistogramMetricFamily(self._name, self._what, labels=("model",))
        names = [*map(floatToGoString, self._bounds), "+Inf"]
        with self._lock:
            for model, counts in self._counts.items():
                family.add_metric((model,), list(zip(names, accumulate(counts), strict=True)), self._sums[model])
        yield family


class EncoderTelemetry:
    """All encoders' metrics."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

        def histogram(name: str, what: str, buckets: tuple[float, ...]) -> Histogram:
            return Histogram(f"{_PREFIX}_{name}", what, ("model",), registry=registry, buckets=buckets)

        def counter(name: str, what: str, labels: tuple[str, ...]) -> Counter:
            return Counter(f"{_PREFIX}_{name}", what, labels, registry=registry)

        self.queue_s = CountedHistogram(f"{_PREFIX}_queue_seconds", "Time a text waited for a worker.", _SECONDS)
        registry.register(self.queue_s)
        self.inference_s = histogram("inference_seconds", "Time of one run of the encoder.", _SECONDS)
        self.tokenize_s = histogram("tokenize_seconds", "Time of tokenizing one call's texts.", _SECONDS)
        self.batch_texts = histogram("batch_texts", "Texts of one run.", _TEXTS)
        self.batch_tokens = histogram("batch_tokens", "Padded tokens of one run.", _TOKENS)
        self.tokens = counter("tokens", "Tokens computed by an encoder: real tokens and padding.", ("model", "kind"))
        self.texts = counter("texts", "Texts answered, by source of the result.", ("source",))
        self.failures = counter("text_failures", "Texts that failed, by status.", ("status",))
        self.dropped = counter("dropped_texts", "Queued texts that no caller waited for any more.", ("reason",))
        self._texts_by_source = [self.texts.labels(source.name.lower()) for source in AnswerSource]

    def expose(self, *, in_flight: Callable[[], float]) -> None:
        """Export the number of pending texts, read at each scrape."""
        gauge = Gauge(f"{_PREFIX}_in_flight_texts", "Texts that are being computed.", registry=self._registry)
        gauge.set_function(in_flight)

    def expose_gpu(self, *, busy_s: Callable[[], float]) -> None:
        """Export the time that the GPU has spent on this process's runs, read at each scrape."""
        what = "Time that the GPU spent on this process's runs, and on loading models."
        self._registry.register(ReadCounter(f"{_PREFIX}_gpu_busy_seconds", what, busy_s))

    def count_answers(self, sources: bytes | bytearray, failed: Iterable[tuple[int, Failure]] = ()) -> None:
        """Count one call's answered texts by source, and failed texts by status."""
        counts = [sources.count(source) for source in AnswerSource]
        for position, failure in failed:
            counts[sources[position]] -= 1
            self.failures.labels(failure.status.name.lower()).inc()
        for child, count in zip(self._texts_by_source, counts, strict=True):
            if count:
                child.inc(count)


class ModelTelemetry:
    """The metrics of one model."""

    def __init__(self, telemetry: EncoderTelemetry, name: str) -> None:
        self.tokenize_s = telemetry.tokenize_s.labels(name)
        self._model = name
        self._queue_s = telemetry.queue_s
        self._queue_s.add_model(name)
        self._inference_s = telemetry.inference_s.labels(name)
        self._batch_texts = telemetry.batch_texts.labels(name)
        self._batch_tokens = telemetry.batch_tokens.labels(name)
        self._real_tokens = telemetry.tokens.labels(name, "real")
        self._padding_tokens = telemetry.tokens.labels(name, "padding")

    def ran(self, texts: Sequence[PendingText], *, padded_tokens: int, began_s: float, duration_s: float) -> None:
        """Count one run."""
        real_tokens = sum([text.length for text in texts])
        self._inference_s.observe(duration_s)
        self._batch_texts.observe(len(texts))
        self._batch_tokens.observe(padded_tokens)
        self._real_tokens.inc(real_tokens)
        self._padding_tokens.inc(padded_tokens - real_tokens)
        for queued_s, count in Counted([text.queued_s for text in texts]).items():
            self._queue_s.observe(self._model, max(0.0, began_s - queued_s), count)


class TritonTelemetry:
    """Metrics for models in Triton."""

    def __init__(self, registry: CollectorRegistry) -> None:
        prefix = "gradewire_engine_triton"
        self.errors = Counter(
            f"{prefix}_inference_errors", "Inferences that failed, by kind.", ("model", "kind"), registry=registry
        )
        self.in_flight = Gauge(f"{prefix}_in_flight", "Inferences in progress.", ("model",), registry=registry)
        self.switches = Counter(
            f"{prefix}_model_switches", "Models replaced while the server was running.", ("model",), registry=registry
        )
        self.repairs = Counter(
            f"{prefix}_repairs", "Requested loads to repair a model.", ("model", "outcome"), registry=registry
        )
        self._breaker = Gauge(
            f"{prefix}_breaker_state", "1 for a model's current breaker state.", ("model", "state"), registry=registry
        )

    def set_breaker(self, model: str, state: BreakerState) -> None:
        """Export a breaker's state."""
        for each in BreakerState:
            self._breaker.labels(model, each).set(each is state)
