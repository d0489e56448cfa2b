"""Figures of several processes, added up: as JSON between processes, and as Prometheus reads them."""

from collections import Counter as Sums
from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeAlias

from prometheus_client.metrics_core import Metric
from prometheus_client.samples import Sample

Families: TypeAlias = list[Any]
"""Families as JSON has them: name, documentation, type, unit, and samples as name, labels, value."""
_LARGEST: Final = frozenset(
    {
        "gradewire_serving",
        "gradewire_degraded",
        "gradewire_admission_wait_seconds",
        "gradewire_overload_seconds",
        "gradewire_engine_breaker_state",
        "gradewire_judge_up",
        "gradewire_triton_breaker_state",
        "process_start_time_seconds",
        "process_max_fds",
        "python_info",
    }
)
"""Gauges that are no amounts: of all processes the largest value is shown. Other gauges are added up."""
_ADDED_FOR_GOOD: Final = frozenset({"counter", "histogram", "summary"})

_Key: TypeAlias = tuple[str, tuple[tuple[str, str], ...]]


def to_json(metrics: Iterable[Metric]) -> Families:
    """Families as JSON can hold them; exemplars are left out."""
    return [
        [each.name, each.documentation, each.type, each.unit, [[s.name, s.labels, s.value] for s in each.samples]]
        for each in metrics
    ]


class Totals:
    """Adds figures up, those of processes that have ended included: a counter never goes back."""

    def __init__(self) -> None:
        self._ended: Sums[_Key] = Sums()
        self._families: dict[str, Metric] = {}
        self._samples: dict[str, dict[_Key, Sample]] = {}

    def ended(self, families: Families) -> None:
        """Keeps the counts of a process that has ended."""
        for metric in map(_metric, families):
            if metric.type in _ADDED_FOR_GOOD:
                self._families.setdefault(metric.name, metric)
                samples = self._samples.setdefault(metric.name, {})
                for sample in metric.samples:
                    key = _key(sample)
                    samples.setdefault(key, sample)
                    self._ended[key] += sample.value  # type: ignore[assignment] # floats are counted

    def of(self, processes: Sequence[Families]) -> list[Metric]:
        """The figures of these processes and of those before them."""
        values: dict[_Key, float] = dict(self._ended)
        shapes = dict(self._families)
        order = {name: dict(samples) for name, samples in self._samples.items()}
        for metric in (each for families in processes for each in map(_metric, families)):
            shapes.setdefault(metric.name, metric)
            samples = order.setdefault(metric.name, {})
            largest = metric.name in _LARGEST or metric.type == "info"
            for sample in metric.samples:
                key = _key(sample)
                samples.setdefault(key, sample)
                before = values.get(key)
                if before is None:
                    values[key] = sample.value
                else:
                    values[key] = max(before, sample.value) if largest else before + sample.value
        return [_with(shapes[name], samples, values) for name, samples in order.items()]


def _metric(family: Any) -> Metric:
    name, documentation, kind, unit, samples = family
    metric = Metric(name, documentation, kind, unit)
    for sample_name, labels, value in samples:
        metric.add_sample(sample_name, labels, value)
    return metric


def _with(shape: Metric, samples: dict[_Key, Sample], values: dict[_Key, float]) -> Metric:
    total = Metric(shape.name, shape.documentation, shape.type, shape.unit)
    for key, sample in samples.items():
        total.add_sample(sample.name, sample.labels, values[key])
    return total


def _key(sample: Sample) -> _Key:
    return sample.name, tuple(sorted(sample.labels.items()))
