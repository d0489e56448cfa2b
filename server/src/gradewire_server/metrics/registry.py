"""All metrics by name. To add a metric, put the metric's file into a subpackage of `metrics`."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from gradewire_proto import metric_parameters
from gradewire_server.domain.metric import Metric, MetricInfo


def _metrics_in_subpackages() -> Iterator[Metric[Any]]:
    package = import_module(__name__.rpartition(".")[0])
    for room in iter_modules(package.__path__, f"{package.__name__}."):
        if room.ispkg:
            for file in iter_modules(import_module(room.name).__path__, f"{room.name}."):
                if not file.ispkg:
                    yield from _metrics_of(vars(import_module(file.name)), file.name)


def _metrics_of(names: Mapping[str, Any], module: str) -> Iterator[Metric[Any]]:
    for value in names.values():
        if isinstance(value, type):
            # Skip base classes, which have no `info`, and imported classes.
            if value.__module__ == module and isinstance(vars(value).get("info"), MetricInfo):
                yield value()
        elif isinstance(getattr(value, "info", None), MetricInfo) and not isinstance(
            vars(type(value)).get("info"), MetricInfo
        ):
            yield value


def _by_name() -> dict[str, Metric[Any]]:
    """Return the metrics by name, in types.proto's order.

    Raises:
        TypeError: Two metrics have the same name, or types.proto lacks a metric.
    """
    found: dict[str, Metric[Any]] = {}
    for metric in _metrics_in_subpackages():
        name = metric.info.name
        if found.setdefault(name, metric) is not metric:
            raise TypeError(f"two metrics have the name {name}")
    if unknown := found.keys() - metric_parameters.PARAMETERS.keys():
        raise TypeError(f"types.proto lacks {', '.join(sorted(unknown))}")
    return {name: found[name] for name in metric_parameters.PARAMETERS if name in found}


_METRICS = _by_name()

COMPARISONS: Mapping[str, Metric[Any]] = {
    name: metric for name, metric in _METRICS.items() if name in metric_parameters.COMPARISONS
}
"""The metrics that compare two answers, by name."""

REGISTRY: Mapping[str, Metric[Any]] = {name: metric for name, metric in _METRICS.items() if name not in COMPARISONS}
"""The metrics that grade one answer, by name."""
