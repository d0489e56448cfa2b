"""Metric identifiers in JSON requests, such as "smile:fast". The client library parses them."""

from collections.abc import Iterator
from typing import Any, Final

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor

from gradewire.errors import InvalidRequest
from gradewire.metrics.choice import MetricChoice, MetricDefaults, choose_metrics
from gradewire_gateway.problems import invalid
from gradewire_proto.v1 import types_pb2

METRIC: Final = types_pb2.MetricSpec.DESCRIPTOR.full_name
"""The message that a string in a list of metrics stands for."""
_MOST_IDENTIFIERS: Final = 256
"""Maximum number of identifiers in a list, which take some milliseconds to parse. Servers accept fewer metrics."""
_SET_NAMES: Final = ("reference_set", "referenceSet")


def parse_identifiers(value: dict[str, Any], kind: Descriptor, at: str = "", *, where: str = "") -> None:
    """Replace the identifiers in a message's lists of metrics with the metrics' JSON objects.

    A reference set in an identifier becomes the reference set of the message.

    Args:
        value: The message's JSON value.
        kind: The message's descriptor.
        at: The path of the message, such as "config.".
        where: Text to put before errors, such as "line 3: ".

    Raises:
        ProblemError: An identifier is wrong, or there is more than one reference set.
    """
    for field in kind.fields:
        held = field.message_type
        if held is None:
            continue
        for name in {field.name, field.json_name} & value.keys():
            inside = value[name]
            if held.full_name == METRIC and isinstance(inside, list):
                if any(isinstance(each, str) for each in inside):
                    value[name] = list(_parsed(value, inside, f"{at}{name}", where))
            elif isinstance(inside, dict) and not field.is_repeated:
                parse_identifiers(inside, held, f"{at}{name}.", where=where)


def _parsed(value: dict[str, Any], metrics: list[Any], at: str, where: str) -> Iterator[Any]:
    identifiers = sum(1 + each.count(",") for each in metrics if isinstance(each, str))
    if identifiers > _MOST_IDENTIFIERS:
        raise invalid(f"{where}{at}: has {identifiers} metric identifiers; send at most {_MOST_IDENTIFIERS}", at)
    sets = {name: value[name] for name in _SET_NAMES if value.get(name)}
    for index, each in enumerate(metrics):
        if not isinstance(each, str):
            yield each
            continue
        path = f"{at}[{index}]"
        try:
            choice = choose_metrics(each, MetricDefaults())
        except InvalidRequest as error:
            raise invalid(f"{where}{path}: {error}", path) from None
        if choice.reference_set:
            sets[path] = choice.reference_set
        yield from _objects(choice)
    if len({str(named) for named in sets.values()}) > 1:
        said = " and ".join(f"{path} names {named!r}" for path, named in sets.items())
        raise invalid(
            f"{where}reference_set: {said}, but a call has one set; leave out one of them, or make two calls",
            "reference_set",
        )
    if sets:
        value[next((name for name in _SET_NAMES if name in value), _SET_NAMES[0])] = next(iter(sets.values()))


def _objects(choice: MetricChoice) -> Iterator[dict[str, Any]]:
    for metric, spec in zip(choice.metrics, choice.specs, strict=True):
        versioned = types_pb2.MetricSpec(version=metric.version or 0)
        versioned.MergeFrom(spec)
        yield json_format.MessageToDict(versioned)
