"""Prometheus metrics for judges."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from gradewire_server.domain.items import Status, Timing
from gradewire_server.domain.needs import AnswerSource

_SECONDS: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)
_SEQUENCES: Final = (1, 2, 4, 8, 16, 32, 64)
_KIND_SOURCE: Final = ("kind", "source")
_TOKENS: Final = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096)


@dataclass(frozen=True, slots=True)
class Tokens:
    """Token counts that a judge's server reported. None means that the server did not report this count.

    Prompt tokens include cached tokens. Generated tokens include thoughts.
    """

    prompt: int | None = None
    cached: int | None = None
    generated: int | None = None

    def plus(self, other: "Tokens") -> "Tokens":
        """Add `other`, count by count, and return the sums. A sum is None if one of its two counts is None."""
        return Tokens(
            _sum(self.prompt, other.prompt),
            _sum(self.cached, other.cached),
            _sum(self.generated, other.generated),
        )


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other


class JudgeTelemetry:
    """All judges' metrics. For one event loop only."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._known: dict[tuple[Counter | Histogram, str, str], Any] = {}

        def histogram(name: str, what: str, buckets: tuple[float, ...], labels: tuple[str, ...] = ()) -> Histogram:
            return Histogram(f"gradewire_judge_{name}", what, labels, registry=registry, buckets=buckets)

        def counter(name: str, what: str, labels: tuple[str, ...] = ()) -> Counter:
            return Counter(f"gradewire_judge_{name}", what, labels, registry=registry)

        self._answers = counter("answers", "Judges' answers that metrics received, by kind and source.", _KIND_SOURCE)
        self._failures = counter("failures", "Needs that failed, by status.", ("status",))
        self._queue_s = histogram("queue_seconds", "Time a computed answer waited for its first run.", _SECONDS)
        self._inference_s = histogram("inference_seconds", "Time of computing an answer.", _SECONDS, ("kind",))
        self._run_sequences = histogram("run_sequences", "Sequences of one run of the embedded judge.", _SEQUENCES)
        self._run_tokens = histogram("run_tokens", "Tokens computed in one run of the embedded judge.", _TOKENS)
        self._run_s = histogram("run_seconds", "Time of one run of the embedded judge.", _SECONDS)
        self._prefill = counter("prefill_tokens", "Prompt tokens computed by the embedded judge.")
        self._reused = counter("reused_tokens", "Fixed-prompt tokens that were not computed again.")
        self._decode = counter("decode_tokens", "Tokens written by the embedded judge.")
        self._restarts = counter("restarts", "Lost worker processes of the embedded judge.")
        self._remote_tokens = counter("remote_tokens", "Tokens that a judge's server reported.", ("kind",))
        self._remote_cost = counter("remote_cost", "Price of the reported tokens, from the configured rates.")
        self._remote_unknown = counter(
            "remote_unknown", "Answers whose token count was not reported, or whose price is not configured.", ("what",)
        )
        self._remote_retries = counter("remote_retries", "Repeated requests to a judge's server.", ("reason",))
        self._remote_s = histogram("remote_request_seconds", "Time of one request to a judge's server.", _SECONDS)
        self._remote_in_flight = self._gauge("remote_in_flight", "Requests in progress to a judge's server.")

    def expose(self, *, queued: Callable[[], float], up: Callable[[], float]) -> None:
        """Add gauges that are read at each scrape."""
        self._gauge("queue_items", "Needs that are waiting or in progress.").set_function(queued)
        self._gauge("up", "1 while the default judge can answer or can be loaded, otherwise 0.").set_function(up)

    def answered(self, kind: str, source: AnswerSource, timing: Timing) -> None:
        """Count an answer. `kind` is "choose" or "generate"."""
        self._series(self._answers, kind, source.name).inc()
        if source is AnswerSource.COMPUTED:
            self._queue_s.observe(timing.queue_s)
            self._series(self._inference_s, kind).observe(timing.inference_s)

    def _series(self, metric: Counter | Histogram, label: str, source: str = "") -> Any:
        """Return a metric's series. Finding it by its labels takes longer than counting."""
        key = metric, label, source
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = metric.labels(label, source.lower()) if source else metric.labels(label)
        return found

    def failed(self, status: Status) -> None:
        """Count a failed need."""
        self._failures.labels(status.name.lower()).inc()

    def ran(
        self, *, sequences: int, prefill_tokens: int, decode_tokens: int, reused_tokens: int, duration_s: float
    ) -> None:
        """Count a run of an embedded model.

        Reused tokens, which are not computed again, count once for every item that started in this run.
        """
        self._run_sequences.observe(sequences)
        self._run_tokens.observe(prefill_tokens + decode_tokens)
        self._run_s.observe(duration_s)
        self._prefill.inc(prefill_tokens)
        self._reused.inc(reused_tokens)
        self._decode.inc(decode_tokens)

    def restarted(self) -> None:
        """Count a lost worker that is being restarted."""
        self._restarts.inc()

    def request_answered(self, tokens: Tokens, cost: float | None, duration_s: float) -> None:
        """Count an answered request to a judge's server. `cost` is None if the tokens or their price are unknown."""
        self._series(self._remote_tokens, "prompt").inc(tokens.prompt or 0)
        self._series(self._remote_tokens, "cached").inc(tokens.cached or 0)
        self._series(self._remote_tokens, "generated").inc(tokens.generated or 0)
        self._remote_cost.inc(cost or 0.0)
        if tokens.prompt is None or tokens.generated is None:
            self._series(self._remote_unknown, "tokens").inc()
        elif cost is None:
            self._series(self._remote_unknown, "price").inc()
        self._remote_s.observe(duration_s)

    def request_retried(self, reason: str) -> None:
        """Count a request that is sent again because of "rate_limited", "unreachable" or "server_error"."""
        self._remote_retries.labels(reason).inc()

    def requests_in_flight(self, change: int) -> None:
        """Record that a request was sent (1) or has ended (-1)."""
        self._remote_in_flight.inc(change)

    def _gauge(self, name: str, what: str) -> Gauge:
        return Gauge(f"gradewire_judge_{name}", what, registry=self._registry)
