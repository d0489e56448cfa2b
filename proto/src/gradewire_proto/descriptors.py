"""Look up the choices of metric parameters, and comments, in the protos."""

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType

from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor

from gradewire_proto.metric_parameters import PARAMETERS
from gradewire_proto.v1 import types_pb2


def choices(enum: EnumDescriptor) -> dict[int, str]:
    """Return an enum's choices by number, without UNSPECIFIED. SMILE_PRESET_FAST becomes "fast"."""
    prefix = enum.values_by_number[0].name.removesuffix("UNSPECIFIED")
    return {value.number: value.name.removeprefix(prefix).lower() for value in enum.values if value.number}


def choices_of(metric: str, field: FieldDescriptor) -> dict[str, int]:
    """Return the enum numbers that a metric's parameter accepts, by name; {} if the parameter is not an enum."""
    if field.enum_type is None:
        return {}
    taken = next(each.allowed for each in PARAMETERS[metric] if each.name == field.name).split(", ")
    return {name: number for number, name in choices(field.enum_type).items() if name in taken}


def counts_over_request(spec: types_pb2.MetricSpec) -> bool:
    """Return True if a metric weights words by their counts in the request's items, by parameter or by default."""
    metric = spec.WhichOneof("metric") or ""
    for parameter in PARAMETERS.get(metric, ()):
        message = getattr(spec, metric)
        enum = message.DESCRIPTOR.fields_by_name[parameter.name].enum_type
        if enum is not None and enum.name == "Corpus":
            number = getattr(message, parameter.name)
            return bool(number == types_pb2.CORPUS_REQUEST or (not number and parameter.default_value == "request"))
    return False


@cache
def all_comments() -> Mapping[str, str]:
    """Return the protos' comments, without line breaks, by the full name of the element that they describe."""
    text = files("gradewire_proto.v1").joinpath("comments.json").read_text("utf-8")
    found: dict[str, str] = json.loads(text)
    return MappingProxyType(found)
