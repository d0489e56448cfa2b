"""Parse the metrics that a caller names, fill in the call's defaults, and label the results."""

import difflib
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache, lru_cache
from typing import Any, Final
from urllib.parse import unquote

from gradewire.errors import InvalidRequest
from gradewire.metrics import COMPARISON_TYPES, KNOWN_TYPES, METRIC_TYPES, Compare, Preset, Smile, Synthetic
from gradewire.metrics.base import Metric, wire_parameters
from gradewire.metrics.prompts import short_prompt
from gradewire_proto.v1 import types_pb2
from gradewire_proto.wire_rules import LINE, current, join_line

# In an identifier, preset and version come before the parameters.
_HEAD = frozenset({"preset", "version"})


@lru_cache(maxsize=256)
def parse_metric_line(line: str) -> Metric:
    """Parse a metric identifier.

    Raises:
        InvalidRequest: The identifier is malformed, or names an unknown metric, preset, parameter or value.
    """
    return _parse(line, METRIC_TYPES, "metric")


@lru_cache(maxsize=256)
def parse_comparison_line(line: str) -> Compare:
    """Parse a comparison's identifier, such as "compare?mode=reason"; raise the errors of `parse_metric_line`."""
    parsed = _parse(line, COMPARISON_TYPES, "comparison")
    assert isinstance(parsed, Compare)  # noqa: S101 - the only comparison type
    return parsed


@lru_cache(maxsize=256)
def parse_line(line: str) -> Metric:
    """Parse the identifier of a metric or comparison; raise the errors of `parse_metric_line`."""
    return _parse(line, KNOWN_TYPES, "metric")


def _parse(line: str, kinds: Mapping[str, type[Metric]], what: str) -> Metric:
    if (match := LINE.fullmatch(line.strip())) is None:
        raise InvalidRequest(
            f"{line!r} is not a {what}: write NAME, NAME:PRESET or NAME:PRESET/VERSION?KEY=VALUE&KEY=VALUE"
        )
    name = current(match["name"])
    if (kind := kinds.get(name)) is None:
        if name in COMPARISON_TYPES:
            raise InvalidRequest(f"{line!r} compares two answers: use Client.compare(pairs, by=…)")
        place = "" if line == name else f"{line!r}: "
        near = difflib.get_close_matches(name, kinds, n=1)
        meant = f". Did you mean {near[0]}?" if near else ""
        raise InvalidRequest(f"{place}unknown {what} {name!r}: use one of {', '.join(kinds)}{meant}")
    arguments: dict[str, Any] = {}
    if match["preset"] is not None:
        if "preset" not in wire_parameters(name):
            raise InvalidRequest(f"{line!r}: {name} has no presets: leave out ':{match['preset']}'")
        arguments["preset"] = match["preset"]
    if match["version"] is not None:
        arguments["version"] = int(match["version"])
    for pair in match["parameters"].split("&") if match["parameters"] else ():
        key, value = _parameter(line, name, pair)
        if key in arguments:
            raise InvalidRequest(f"{line!r} has {key} twice: leave out one")
        arguments[key] = value
    return kind(**arguments)


def format_metric_line(metric: Metric) -> str:
    """Return a metric's identifier, which `parse_metric_line` turns into an equal metric."""
    return write_line(metric, {"version", *parameter_names(metric.name)})


def write_line(metric: Metric, keys: Collection[str]) -> str:
    """Return a metric's identifier with the preset and the parts that `keys` names (parameters, or "version")."""
    values = {key: getattr(metric, key) for key in parameter_names(metric.name) if key in keys}
    values["preset"] = getattr(metric, "preset", None)
    return join_line(metric.name, values, version=metric.version if "version" in keys else None)


@cache
def parameter_names(name: str) -> tuple[str, ...]:
    """Return the parameter names that a metric's identifier can have, in alphabetical order."""
    return tuple(sorted({field.name for field in fields(KNOWN_TYPES[name])} - _HEAD))


def _parameter(line: str, name: str, pair: str) -> tuple[str, Any]:
    key, equals, value = pair.partition("=")
    if key not in parameter_names(name):
        raise InvalidRequest(f"{line!r}: {name} has no parameter {key!r}; its parameters: {_listed(name)}")
    if not equals:
        raise InvalidRequest(f"{line!r}: {key} has no value: write {key}=VALUE")
    return key, _value(line, name, key, unquote(value))


def _value(line: str, name: str, key: str, text: str) -> Any:
    parameter = wire_parameters(name).get(key)
    try:
        return text if parameter is None else parameter.parse(text)
    except InvalidRequest as error:
        raise InvalidRequest(f"{line!r}: {error}") from None


def _listed(name: str) -> str:
    return ", ".join(f"{key}=…" for key in parameter_names(name))


MetricsLike = str | Metric | Sequence[str | Metric] | Mapping[str, str | Metric]

_USUAL_PRESET: Final = "v1"
# Messages, by option, for a call in which no metric accepts the option.
_FOR_SOME = {
    "preset": "preset is for smile, which is not among the metrics: leave preset out",
    "model": "model: none of the metrics has an encoder (for a judge use judge, for a grader 'grader?model=NAME'): "
    "leave model out",
    "judge": "judge: none of the metrics has a judge: leave judge out",
}


@dataclass(frozen=True, slots=True)
class MetricChoice:
    """A call's metrics, with the call's defaults filled in, and the metrics' distinct labels and messages."""

    labels: tuple[str, ...]
    metrics: tuple[Metric, ...]
    specs: tuple[types_pb2.MetricSpec, ...]
    reference_set: str = ""

    @property
    def named(self) -> dict[str, Metric]:
        """The metrics by label."""
        return dict(zip(self.labels, self.metrics, strict=True))

    @property
    def asks_judge(self) -> bool:
        """True if a metric may ask a judge, which takes seconds per item instead of milliseconds."""
        return any(metric.asks_judge() for metric in self.metrics)

    @property
    def image_labels(self) -> frozenset[str]:
        """Labels of the metrics that show pictures to a judge."""
        return frozenset(label for label, metric in self.named.items() if getattr(metric, "image", None))

    @property
    def shows_images(self) -> bool:
        """True if a metric shows pictures to a judge. Otherwise, the client sends no pictures."""
        return any(getattr(metric, "image", None) for metric in self.metrics)


@dataclass(frozen=True, slots=True)
class MetricDefaults:
    """A call's defaults for parameters that the call's metrics do not set.

    `model` is an encoder. `judge` becomes the `model` of judge metrics, and the `judge_model` of metrics with both an
    encoder and a judge.
    """

    preset: Preset | None = None
    synthetic: Synthetic | None = None
    model: str | None = None
    reference_set: str | None = None
    judge: str | None = None

    def of(self, metric: Metric) -> dict[str, Any]:
        """Return the defaults for a metric's parameters, by name."""
        model = None if metric.needs_grader else self.judge if metric.needs_judge else self.model
        preset = self.preset if isinstance(metric, Smile) else None
        values = {"preset": preset, "synthetic": self.synthetic, "model": model}
        if metric.judge_parameter:
            values[metric.judge_parameter] = self.judge
        return {name: value for name, value in values.items() if name in wire_parameters(metric.name)}

    def reach(self, metric: Metric) -> bool:
        """Return True if a default applies to the metric."""
        return any(value is not None for value in self.of(metric).values())


def choose_metrics(metrics: MetricsLike, defaults: MetricDefaults) -> MetricChoice:
    """Parse and label metrics, and fill in the call's defaults.

    A label is the metric's identifier without the call's defaults, or only the metric's name if the identifier contains
    a version. Labels that would be equal get additional parameters.

    Args:
        metrics: `"smile,sbert"`, `"smile:fast"`, full identifiers, typed metrics, a sequence of these, or a mapping
            from labels to metrics.
        defaults: The call's arguments. Values that a metric itself sets override the defaults.

    Raises:
        InvalidRequest: `metrics` is empty, a metric is unknown or repeated, a default applies to none of the metrics,
            or there is more than one reference set.
    """
    if isinstance(metrics, str):
        return _choose_written(metrics, defaults)
    if isinstance(metrics, Mapping):
        return _choose_named(metrics, defaults)
    return _choose([metrics] if isinstance(metrics, Metric) else list(metrics), defaults)


def _choose_named(metrics: Mapping[Any, str | Metric], defaults: MetricDefaults) -> MetricChoice:
    for label, written in metrics.items():
        if not isinstance(label, str) or not label:
            raise InvalidRequest(f"metrics: {label!r} is not a label: give a string")
        if isinstance(written, str) and "," in written:
            raise InvalidRequest(f"metrics[{label!r}] contains several metrics: give each metric its own label")
    return _choose(list(metrics.values()), defaults, labels=tuple(metrics))


@lru_cache(maxsize=128)
def _choose_written(metrics: str, defaults: MetricDefaults) -> MetricChoice:
    return _choose([metrics], defaults)


def _choose(
    written: Sequence[str | Metric], defaults: MetricDefaults, labels: tuple[str, ...] | None = None
) -> MetricChoice:
    parsed: list[Metric] = []
    for entry in written:
        if isinstance(entry, str):
            parsed += [parse_metric_line(line) for line in entry.split(",")]
        elif isinstance(entry, Compare):
            raise InvalidRequest(f"{entry.name} compares two answers: use Client.compare(pairs, by=…)")
        elif isinstance(entry, Metric):
            parsed.append(entry)
        else:
            raise InvalidRequest(
                f"metrics[{len(parsed)}] is a {type(entry).__name__}: give a name, an identifier or a metric"
            )
    if not parsed:
        raise InvalidRequest("metrics is empty: name at least one metric, such as smile")
    for name, way_out in _FOR_SOME.items():
        given: dict[str, Any] = {name: getattr(defaults, name)}
        if given[name] is not None and not any(MetricDefaults(**given).reach(metric) for metric in parsed):
            raise InvalidRequest(way_out)
    filled = tuple(_fill(metric, defaults) for metric in parsed)
    specs = tuple(metric.to_spec() for metric in filled)
    return MetricChoice(labels or _labels(parsed), filled, specs, _reference_set(filled, defaults))


def _fill(metric: Metric, defaults: MetricDefaults) -> Metric:
    values = defaults.of(metric)
    if metric.prepared_parameter and getattr(metric, "reference_set", None):
        # A metric that names a reference set reads it, even if the call's default is not "prepared".
        values[metric.prepared_parameter] = "prepared"
    missing = {name: value for name, value in values.items() if value is not None and getattr(metric, name) is None}
    return replace(metric, **missing)


def _reference_set(metrics: Sequence[Metric], defaults: MetricDefaults) -> str:
    named = {}
    for metric in metrics:
        if of_metric := getattr(metric, "reference_set", None):
            if not metric.reads_prepared:
                reader = metric.prepared_parameter or ""
                raise InvalidRequest(
                    f"{metric.name} has reference_set={of_metric!r} and {reader}={getattr(metric, reader)!r}, but a "
                    f"reference set needs {reader}='prepared': leave out one of the two"
                )
            named[of_metric] = "a metric"
    if defaults.reference_set:
        named[defaults.reference_set] = "the call"
    if len(named) > 1:
        said = " and ".join(f"{who} names {name!r}" for name, who in named.items())
        raise InvalidRequest(f"reference_set: {said}, but a call has one set: leave out one of them, or make two calls")
    return next(iter(named), "")


def _labels(metrics: Sequence[Metric]) -> tuple[str, ...]:
    labels = [_label(metric) for metric in metrics]
    times = Counter(labels)
    for name in {metric.name for metric, label in zip(metrics, labels, strict=True) if times[label] > 1}:
        places = [place for place, metric in enumerate(metrics) if metric.name == name]
        for place, label in zip(places, _differing_labels([metrics[place] for place in places]), strict=True):
            labels[place] = label
    if repeated := [label for label, count in Counter(labels).items() if count > 1]:
        raise InvalidRequest(f"metrics has {repeated[0]} twice: leave out one")
    return tuple(labels)


def _label(metric: Metric) -> str:
    """Return the metric's name and the values that the metric sets. If it sets a version, omit these values.

    The label contains the preset unless the preset is the server's default.
    """
    keys = () if metric.version is not None else parameter_names(metric.name)
    return write_line(_without_usual_preset(_as_labelled(metric)), keys)


def _differing_labels(metrics: Sequence[Metric]) -> list[str]:
    explicit = [_as_labelled(metric) for metric in metrics]
    keys = ("version", *parameter_names(explicit[0].name))
    differing = {key for key in keys if len({getattr(metric, key) for metric in explicit}) > 1}
    if "version" not in differing:
        # Without a version, `_label` leaves out the usual preset, so these labels must leave the preset out as well.
        explicit = [_without_usual_preset(metric) for metric in explicit]
    return [write_line(metric, differing) for metric in explicit]


def _without_usual_preset(metric: Metric) -> Metric:
    usual: dict[str, Any] = {"preset": None}
    return replace(metric, **usual) if getattr(metric, "preset", None) == _USUAL_PRESET else metric


def _as_labelled(metric: Metric) -> Metric:
    changes: dict[str, Any] = {}
    if hasattr(metric, "preset"):
        # The server's default preset is v1, so a metric without a preset equals one with v1.
        changes["preset"] = metric.preset or _USUAL_PRESET
    if prompt := getattr(metric, "prompt", None):
        changes["prompt"] = short_prompt(prompt)
    return replace(metric, **changes) if changes else metric
