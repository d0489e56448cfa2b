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
        reference_set: Of the call; empty without.
    """

    labels: tuple[str, ...]
    metrics: tuple[Metric, ...]
    specs: tuple[types_pb2.MetricSpec, ...]
    reference_set: str = ""


@dataclass(frozen=True, slots=True)
class MetricDefaults:
    """What a call says for those of its metrics that do not say it themselves."""

    preset: Preset | None = None
    synthetic: Synthetic | None = None
    model: str | None = None
    reference_set: str | None = None


def choose_metrics(metrics: MetricsLike, defaults: MetricDefaults) -> MetricChoice:
    """Resolves metrics.

    A label is the metric's name; where a name is asked for several times, NAME:PRESET, and where that does not tell
    them apart either, the metric's line.

    Args:
        metrics: `"smile,sbert"`, `"smile:fast"`, whole metric lines, typed metrics, or a sequence of these.
        defaults: The call's own arguments. A metric that says something itself keeps it.

    Raises:
        InvalidRequest: An unknown or repeated metric, none at all, a preset or model that no metric takes, or more than
            one reference set.
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
    specs = tuple(metric.to_spec() for metric in filled)
    return MetricChoice(_labels(filled), filled, specs, _reference_set(filled, defaults))


def _fill(metric: Metric, defaults: MetricDefaults) -> Metric:
    if isinstance(metric, Smile):
        return replace(
            metric,
            preset=metric.preset or defaults.preset,
            synthetic=metric.synthetic or ("prepared" if metric.reference_set else defaults.synthetic),
            model=metric.model or defaults.model,
        )
    if isinstance(metric, Sbert):
        return replace(metric, model=metric.model or defaults.model)
    return metric


def _reference_set(metrics: Sequence[Metric], defaults: MetricDefaults) -> str:
    named = {}
    for metric in metrics:
        if isinstance(metric, Smile) and metric.reference_set:
            if metric.synthetic != "prepared":
                raise InvalidRequest(
                    f"smile has reference_set={metric.reference_set!r} and synthetic={metric.synthetic!r}: a set is "
                    "for synthetic='prepared', leave one out"
                )
            named[metric.reference_set] = "a metric"
    if defaults.reference_set:
        named[defaults.reference_set] = "the call"
    if len(named) > 1:
        said = " and ".join(f"{who} says {name!r}" for name, who in named.items())
        raise InvalidRequest(f"reference_set: {said}, and a call reads one set: leave one out, or make two calls")
    return next(iter(named), "")


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
