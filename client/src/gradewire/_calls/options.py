"""The options of one call, read from what its caller named."""

from dataclasses import dataclass
from typing import Any, Self, cast

from gradewire._calls.arguments import check_metrics, check_text
from gradewire.call_options import PrepareOptions, ScoreOptions
from gradewire.metric_types.choice import MetricChoice, MetricDefaults, MetricsLike, choose_metrics
from gradewire.metric_types.encoders import Preset, Synthetic


@dataclass(frozen=True, slots=True)
class CallOptions:
    """Metrics and options of one call; attributes as in `ScoreOptions`."""

    metrics: MetricsLike
    preset: Preset | None = None
    synthetic: Synthetic | None = None
    model: str | None = None
    judge: str | None = None
    reference_set: str | None = None
    deadline_s: float | None = None

    @classmethod
    def of(cls, method: str, metrics: MetricsLike, options: PrepareOptions) -> Self:
        """The options of a call of a client's method.

        Raises:
            TypeError: The method has no such option; said as Python says it.
        """
        known = PrepareOptions if method == "prepare" else ScoreOptions
        if unknown := options.keys() - known.__optional_keys__:
            raise TypeError(f"{method}() got an unexpected keyword argument {min(unknown)!r}")
        return cls(metrics, **cast("dict[str, Any]", options))

    def choose(self) -> MetricChoice:
        """The metrics, with what the call says for all of them.

        Raises:
            InvalidRequest: An option is of a wrong type, or does not fit the metrics.
        """
        check_metrics(self.metrics)
        for name in ("preset", "synthetic", "model", "judge", "reference_set"):
            check_text(name, getattr(self, name))
        defaults = MetricDefaults(self.preset, self.synthetic, self.model, self.reference_set, self.judge)
        return choose_metrics(self.metrics, defaults)
