"""The options of one call, read from what its caller named."""

from dataclasses import dataclass
from typing import Any, Self

from gradewire._calls.arguments import check_metrics, check_priority, check_text
from gradewire.call_options import PrepareOptions, Priority, ScoreOptions
from gradewire.metric_types.choice import MetricChoice, MetricDefaults, MetricsLike, choose_metrics
from gradewire.metric_types.usual import USUAL_METRICS


@dataclass(frozen=True, slots=True)
class CallOptions:
    """What the caller of one call said.

    Attributes:
        metrics: The metrics, as written; None: those of `USUAL_METRICS` that the server can compute.
        defaults: For metrics that do not say it themselves; not checked yet.
        deadline_s: Seconds; None where the caller said nothing.
        priority: Whether others go first; not checked yet.
    """

    metrics: MetricsLike | None
    defaults: MetricDefaults
    deadline_s: float | None = None
    priority: Priority = "normal"

    @classmethod
    def of(cls, method: str, metrics: MetricsLike | None, options: PrepareOptions) -> Self:
        """The options of a call of a client's method, CLASS.METHOD.

        Raises:
            TypeError: The method has no such option; said as Python says it.
        """
        known = PrepareOptions if method.endswith(".prepare") else ScoreOptions
        if unknown := options.keys() - known.__optional_keys__:
            raise TypeError(f"{method}() got an unexpected keyword argument {min(unknown)!r}")
        said: dict[str, Any] = {**options}
        deadline_s = said.pop("deadline_s", None)
        priority: Priority = said.pop("priority", None) or "normal"
        return cls(metrics, MetricDefaults(**said), deadline_s, priority)

    def choose(self) -> MetricChoice:
        """The metrics, with what the call says for all of them.

        Raises:
            InvalidRequest: An option is of a wrong type, or does not fit the metrics.
        """
        metrics = USUAL_METRICS if self.metrics is None else self.metrics
        check_metrics(metrics)
        check_priority(self.priority)
        for name in ("preset", "synthetic", "model", "judge", "reference_set"):
            check_text(name, getattr(self.defaults, name))
        return choose_metrics(metrics, self.defaults)
