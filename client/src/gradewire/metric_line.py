"""A metric on one line: what reproduces a score.

Grammar: `NAME[:PRESET][/VERSION][?KEY=VALUE&…]`, keys in alphabetical order, values percent-quoted, for instance
`smile:v1/1?model=all-MiniLM-L6-v2@53aa51172d14&sentence_weight=0.3&synthetic=none`.
"""

import re
from functools import lru_cache
from typing import Any
from urllib.parse import quote, unquote

from gradewire.errors import InvalidRequest
from gradewire.metric_types import METRIC_TYPES, Metric, Smile

_LINE = re.compile(
    r"(?P<name>[A-Za-z_]\w*)(?::(?P<preset>\w+))?(?:/(?P<version>[0-9]+))?(?:\?(?P<parameters>.*))?", re.ASCII
)
_PARAMETERS = {
    "smile": ("model", "reference_set", "sentence_weight", "synthetic"),
    "sbert": ("model",),
    "exact_match": (),
    "easy_match": (),
}


@lru_cache(maxsize=256)
def parse_metric_line(line: str) -> Metric:
    """Reads a metric line.

    Raises:
        InvalidRequest: The line is not of the grammar, or names an unknown metric, preset or parameter.
    """
    if (match := _LINE.fullmatch(line.strip())) is None:
        raise InvalidRequest(
            f"{line!r} is no metric: write NAME, NAME:PRESET or NAME:PRESET/VERSION?KEY=VALUE&KEY=VALUE"
        )
    name = match["name"]
    if (kind := METRIC_TYPES.get(name)) is None:
        raise InvalidRequest(f"{line!r}: there is no metric {name!r}, there are {', '.join(METRIC_TYPES)}")
    arguments: dict[str, Any] = {}
    if match["preset"] is not None:
        if kind is not Smile:
            raise InvalidRequest(f"{line!r}: {name} has no presets, leave out ':{match['preset']}'")
        arguments["preset"] = match["preset"]
    if match["version"] is not None:
        arguments["version"] = int(match["version"])
    for pair in match["parameters"].split("&") if match["parameters"] else ():
        key, equals, value = pair.partition("=")
        if key not in _PARAMETERS[name] or not equals:
            raise InvalidRequest(f"{line!r}: {name} has no parameter {pair!r}, it has {_listed(name)}")
        if key in arguments:
            raise InvalidRequest(f"{line!r} says {key} twice: leave one")
        arguments[key] = _value(line, key, unquote(value))
    return kind(**arguments)


def format_metric_line(metric: Metric) -> str:
    """Writes a metric on one line, with what it says itself; `parse_metric_line` gives an equal metric back."""
    preset = f":{metric.preset}" if isinstance(metric, Smile) and metric.preset else ""
    version = f"/{metric.version}" if metric.version is not None else ""
    values = {key: getattr(metric, key) for key in _PARAMETERS[metric.name]}
    parameters = "&".join(f"{key}={quote(str(value), safe='@')}" for key, value in values.items() if value is not None)
    return f"{metric.name}{preset}{version}{'?' if parameters else ''}{parameters}"


def _value(line: str, key: str, text: str) -> str | float:
    if key != "sentence_weight":
        return text
    try:
        return float(text)
    except ValueError:
        raise InvalidRequest(f"{line!r}: sentence_weight={text!r} is no number") from None


def _listed(name: str) -> str:
    return ", ".join(f"{key}=…" for key in _PARAMETERS[name]) or "none"
