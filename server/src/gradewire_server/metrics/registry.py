"""All metrics by name, found in the rooms of this package: a new one is a file in one of them, and no line here."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from gradewire_proto import metric_parameters
from gradewire_server.domain.metric import Metric, MetricInfo


def _found() -> Iterator[Metric[Any]]:
    """Yield the metrics of all files of all rooms: objects of a module, or classes that it defines, with an `info`."""
    package = import_module(__name__.rpartition(".")[0])
    for room in iter_modules(package.__path__, f"{package.__name__}."):
        if room.ispkg:
            for file in iter_modules(import_module(room.name).__path__, f"{room.name}."):
                if not file.ispkg:
                    yield from _metrics_of(vars(import_module(file.name)), file.name)


def _metrics_of(names: Mapping[str, Any], module: str) -> Iterator[Metric[Any]]:
    for value in names.values():
        if isinstance(value, type):
            # A class whose objects are given their info is a base of metrics; one that is imported is found at home.
            if value.__module__ == module and isinstance(vars(value).get("info"), MetricInfo):
                yield value()
        elif isinstance(getattr(value, "info", None), MetricInfo) and not isinstance(
            vars(type(value)).get("info"), MetricInfo
        ):
            yield value


def _by_name() -> dict[str, Metric[Any]]:
    """Return the metrics by name, in the order of types.proto.

    Raises:
        TypeError: Two metrics have one name, or types.proto does not have one.
    """
    found: dict[str, Metric[Any]] = {}
    for metric in _found():
        name = metric.info.name
        if found.setdefault(name, metric) is not metric:
            raise TypeError(f"two metrics are called {name}")
    if unknown := found.keys() - metric_parameters.PARAMETERS.keys():
        raise TypeError(f"types.proto has no {', '.join(sorted(unknown))}")
    return {name: found[name] for name in metric_parameters.PARAMETERS if name in found}


_METRICS = _by_name()

COMPARISONS: Mapping[str, Metric[Any]] = {
    name: metric for name, metric in _METRICS.items() if name in metric_parameters.COMPARISONS
}
"""Metrics of a pair of answers by name; none of an item."""

REGISTRY: Mapping[str, Metric[Any]] = {name: metric for name, metric in _METRICS.items() if name not in COMPARISONS}
"""Metrics of an item by name, in the order in which they are listed."""
