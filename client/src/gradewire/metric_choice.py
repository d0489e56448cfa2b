"""From what a caller writes as `metrics` to what is asked of the server, and how the results are called."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from gradewire.errors import InvalidRequest
from gradewire.metric_line import format_metric_line, parse_metric_line
from gradewire.metric_types import Metric, Preset, Sbert, Smile, Synthetic
from gradewire_proto.v1 import types_pb2

MetricsLike = str | Metric | Sequence[str | Metric]


@dataclass(frozen=True, slots=True)
class MetricChoice:
    """The metrics of a call.

    Attributes:
        labels: What each result is called, one per metric, distinct.
        metrics: With the call's defaults filled in.
        specs: The same for the wire.
    """

    labels: tuple[str, ...]
    metrics: tuple[Metric, ...]
    specs: tuple[types_pb2.MetricSpec, ...]


@dataclass(frozen=True, slots=True)
class MetricDefaults:
    """What a call says for those of its metrics that do not say it themselves."""

    preset: Preset | None = None
    synthetic: Synthetic | None = None
    model: str | None = None


def choose_metrics(metrics: MetricsLike, defaults: MetricDefaults) -> MetricChoice:
    """Resolves metrics.

    A label is the metric's name; where a name is asked for several times, NAME:PRESET, and where that does not tell
    them apart either, the metric's line.

    Args:
        metrics: `"smile,sbert"`, `"smile:fast"`, whole metric lines, typed metrics, or a sequence of these.
        defaults: The call's own arguments. A metric that says something itself keeps it.

    Raises:
        InvalidRequest: An unknown or repeated metric, none at all, or a preset or model that no metric takes.
    """
    if isinstance(metrics, str):
        return _choose_written(metrics, defaults)
    return _choose([metrics] if isinstance(metrics, Metric) else list(metrics), defaults)


@lru_cache(maxsize=128)
def _choose_written(metrics: str, defaults: MetricDefaults) -> MetricChoice:
    """Most programs call with the same few words again and again."""
    return _choose([metrics], defaults)


def _choose(written: Sequence[str | Metric], defaults: MetricDefaults) -> MetricChoice:
    parsed: list[Metric] = []
    for entry in written:
        if isinstance(entry, str):
            parsed += [parse_metric_line(line) for line in entry.split(",")]
        elif isinstance(entry, Metric):
            parsed.append(entry)
        else:
            raise InvalidRequest(f"metrics[{len(parsed)}] is a {type(entry).__name__}: give a name, a line or a metric")
    if not parsed:
        raise InvalidRequest("metrics is empty: name at least one, for instance smile")
    if defaults.preset is not None and not any(isinstance(metric, Smile) for metric in parsed):
        raise InvalidRequest("preset is for smile, which is not among the metrics: leave it out")
    if defaults.model is not None and not any(isinstance(metric, Smile | Sbert) for metric in parsed):
        raise InvalidRequest("model: none of the metrics uses one, leave it out")
    filled = tuple(_fill(metric, defaults) for metric in parsed)
    return MetricChoice(_labels(filled), filled, tuple(metric.to_spec() for metric in filled))


def _fill(metric: Metric, defaults: MetricDefaults) -> Metric:
    if isinstance(metric, Smile):
        return replace(
            metric,
            preset=metric.preset or defaults.preset,
            synthetic=metric.synthetic or defaults.synthetic,
            model=metric.model or defaults.model,
        )
    if isinstance(metric, Sbert):
        return replace(metric, model=metric.model or defaults.model)
    return metric


def _labels(metrics: Sequence[Metric]) -> tuple[str, ...]:
    # Without a preset the server takes v1, so that is what two metrics are told apart by.
    explicit = [
        replace(metric, preset=metric.preset or "v1") if isinstance(metric, Smile) else metric for metric in metrics
    ]
    times = Counter(metric.name for metric in explicit)
    presets = {metric.preset for metric in explicit if isinstance(metric, Smile)}
    labels: list[str] = []
    for metric in explicit:
        if times[metric.name] == 1:
            labels.append(metric.name)
        elif isinstance(metric, Smile) and len(presets) == times["smile"]:
            labels.append(f"smile:{metric.preset}")
        else:
            labels.append(format_metric_line(metric))
    if repeated := [label for label, count in Counter(labels).items() if count > 1]:
        raise InvalidRequest(f"metrics asks for {repeated[0]} twice: leave one")
    return tuple(labels)
