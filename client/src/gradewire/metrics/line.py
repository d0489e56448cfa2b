"""Reads and writes a metric on one line; the grammar stands in gradewire_proto.wire_rules."""

from collections.abc import Collection, Mapping
from dataclasses import fields
from functools import cache, lru_cache
from typing import Any
from urllib.parse import unquote

from gradewire.errors import InvalidRequest
from gradewire.metrics import COMPARISON_TYPES, KNOWN_TYPES, METRIC_TYPES, Compare
from gradewire.metrics.base import Metric, wire_parameters
from gradewire_proto.wire_rules import LINE, current, join_line

# These two stand before the parameters.
_HEAD = frozenset({"preset", "version"})


@lru_cache(maxsize=256)
def parse_metric_line(line: str) -> Metric:
    """Reads a metric line.

    Raises:
        InvalidRequest: The line is not of the grammar, or names an unknown metric, preset or parameter, or a value that
            the parameter does not take.
    """
    return _parse(line, METRIC_TYPES, "metric")


@lru_cache(maxsize=256)
def parse_comparison_line(line: str) -> Compare:
    """Reads the line of a comparison: "compare", "compare?references=true&mode=reason"; raises as `parse_metric_line`.

    Raises:
        InvalidRequest: As there; a metric of items is no comparison.
    """
    parsed = _parse(line, COMPARISON_TYPES, "comparison")
    assert isinstance(parsed, Compare)  # noqa: S101 - the only kind there is
    return parsed


@lru_cache(maxsize=256)
def parse_line(line: str) -> Metric:
    """Reads a line of either kind, as results have them; raises as `parse_metric_line`."""
    return _parse(line, KNOWN_TYPES, "metric")


def _parse(line: str, kinds: Mapping[str, type[Metric]], what: str) -> Metric:
    if (match := LINE.fullmatch(line.strip())) is None:
        raise InvalidRequest(
            f"{line!r} is no {what}: write NAME, NAME:PRESET or NAME:PRESET/VERSION?KEY=VALUE&KEY=VALUE"
        )
    name = current(match["name"])
    if (kind := kinds.get(name)) is None:
        if name in COMPARISON_TYPES:
            raise InvalidRequest(f"{line!r} compares two answers and scores no item: use Client.compare(pairs, by=…)")
        raise InvalidRequest(f"{line!r}: there is no {what} {name!r}, there are {', '.join(kinds)}")
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
    return tuple(sorted({field.name for field in fields(KNOWN_TYPES[name])} - _HEAD))


def _value(line: str, name: str, key: str, text: str) -> Any:
    parameter = wire_parameters(name).get(key)
    try:
        return text if parameter is None else parameter.parse(text)
    except InvalidRequest as error:
        raise InvalidRequest(f"{line!r}: {error}") from None


def _listed(name: str) -> str:
    return ", ".join(f"{key}=…" for key in parameter_names(name)) or "none"
