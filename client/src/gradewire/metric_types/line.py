"""Reads and writes a metric on one line; the grammar stands in gradewire_proto.conventions.metric_lines."""

from collections.abc import Collection
from dataclasses import fields
from functools import cache, lru_cache
from typing import Any
from urllib.parse import unquote

from gradewire.errors import InvalidRequest
from gradewire.metric_types import METRIC_TYPES
from gradewire.metric_types.base import Metric
from gradewire.metric_types.wire import wire_parameters
from gradewire_proto.conventions.metric_lines import LINE, join_line

# These two stand before the parameters.
_HEAD = frozenset({"preset", "version"})


@lru_cache(maxsize=256)
def parse_metric_line(line: str) -> Metric:
    """Reads a metric line.

    Raises:
        InvalidRequest: The line is not of the grammar, or names an unknown metric, preset or parameter, or a value that
            the parameter does not take.
    """
    if (match := LINE.fullmatch(line.strip())) is None:
        raise InvalidRequest(
            f"{line!r} is no metric: write NAME, NAME:PRESET or NAME:PRESET/VERSION?KEY=VALUE&KEY=VALUE"
        )
    name = match["name"]
    if (kind := METRIC_TYPES.get(name)) is None:
        raise InvalidRequest(f"{line!r}: there is no metric {name!r}, there are {', '.join(METRIC_TYPES)}")
    arguments: dict[str, Any] = {}
    if match["preset"] is not None:
        if "preset" not in wire_parameters(name):
            raise InvalidRequest(f"{line!r}: {name} has no presets, leave out ':{match['preset']}'")
        arguments["preset"] = match["preset"]
    if match["version"] is not None:
        arguments["version"] = int(match["version"])
    for pair in match["parameters"].split("&") if match["parameters"] else ():
        key, equals, value = pair.partition("=")
        if key not in parameter_names(name) or not equals:
            raise InvalidRequest(f"{line!r}: {name} has no parameter {pair!r}, it has {_listed(name)}")
        if key in arguments:
            raise InvalidRequest(f"{line!r} says {key} twice: leave one")
        arguments[key] = _value(line, name, key, unquote(value))
    return kind(**arguments)


def format_metric_line(metric: Metric) -> str:
    """Writes a metric on one line, with what it says itself; `parse_metric_line` gives an equal metric back."""
    return write_line(metric, {"version", *parameter_names(metric.name)})


def write_line(metric: Metric, keys: Collection[str]) -> str:
    """The line with some of what the metric says: version and parameters among `keys`; the preset always."""
    values = {key: getattr(metric, key) for key in parameter_names(metric.name) if key in keys}
    values["preset"] = getattr(metric, "preset", None)
    return join_line(metric.name, values, version=metric.version if "version" in keys else None)


@cache
def parameter_names(name: str) -> tuple[str, ...]:
    """What may stand behind the question mark of a metric's line, in alphabetical order."""
    return tuple(sorted({field.name for field in fields(METRIC_TYPES[name])} - _HEAD))


def _value(line: str, name: str, key: str, text: str) -> Any:
    parameter = wire_parameters(name).get(key)
    try:
        return text if parameter is None else parameter.parse(text)
    except InvalidRequest as error:
        raise InvalidRequest(f"{line!r}: {error}") from None


def _listed(name: str) -> str:
    return ", ".join(f"{key}=…" for key in parameter_names(name)) or "none"
