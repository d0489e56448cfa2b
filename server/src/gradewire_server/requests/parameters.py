"""Convert metric parameters between protobuf messages and domain objects. Fields are matched by name."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from types import MappingProxyType
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from gradewire_proto import choices, descriptors
from gradewire_proto.v1 import types_pb2
from gradewire_proto.wire_rules import join_line, with_digest
from gradewire_server.domain.metric import Metric, Parameters
from gradewire_server.metrics.prompts.library import PACKAGE_PROMPTS, PromptLibrary
from gradewire_server.requests.errors import InvalidRequestError


@dataclass(frozen=True, slots=True)
class _Field:
    """A parameter's field. `by_number` and `by_value` are empty if the field is not an enum."""

    name: str
    has_presence: bool
    by_number: Mapping[int, Any]
    by_value: Mapping[Any, int]


def read_parameters(  # noqa: PLR0913 - a message, its metric and path, and three resolved objects
    message: Message,
    metric: Metric[Any],
    path: str,
    *,
    model: str,
    beside: Mapping[str, str] = MappingProxyType({}),
    prompts: PromptLibrary = PACKAGE_PROMPTS,
) -> Parameters:
    """Return a metric's parameters. An unset field gets the preset's value or, without a preset, the default.

    `model` and `beside` (by parameter) are the resolved models' names, without digests. `path` is for error messages.

    Raises:
        InvalidRequestError: An enum number is unknown.
        ParameterError: A value is out of range.
    """
    values: dict[str, Any] = {}
    kind: Any = metric.parameters_type
    if any(field.name == "prompts" for field in fields(kind)):
        values["prompts"] = prompts
    resolved = {metric.info.judge_parameter: "", "model": model, **beside}
    for field in _fields(kind, message.DESCRIPTOR.full_name):
        if field.name in resolved:
            values[field.name] = resolved[field.name]
            continue
        if field.has_presence and not message.HasField(field.name):
            continue
        value = getattr(message, field.name)
        if value == "":
            continue
        if field.by_number:
            if value == 0:
                continue
            if value not in field.by_number:
                known = ", ".join(f"{number} ({name})" for number, name in field.by_number.items())
                raise InvalidRequestError(f"{path}.{field.name}", f"unknown value {value}; use one of {known}")
            value = field.by_number[value]
        values[field.name] = value
    preset = kind.preset_values(values.get("preset"))
    parameters: Parameters = metric.parameters_type(**{**preset, **values})
    return parameters


def write_spec(metric_name: str, parameters: Parameters) -> types_pb2.MetricSpec:
    """Return a metric's spec with all parameters, including defaults."""
    spec = types_pb2.MetricSpec()
    message: Message = getattr(spec, metric_name)
    message.SetInParent()
    kind: type = type(parameters)
    for field in _fields(kind, message.DESCRIPTOR.full_name):
        value = getattr(parameters, field.name)
        if value is not None:
            setattr(message, field.name, field.by_value[value] if field.by_value else value)
    return spec


def write_line(
    metric: Metric[Any],
    parameters: Parameters,
    model_digest: str,
    *,
    beside: Mapping[str, str] = MappingProxyType({}),
    reference_set: str = "",
) -> str:
    """Return the metric identifier for a score. `beside` contains the judge's and grader's digests by parameter."""
    name = metric.info.name
    values: dict[str, Any] = {}
    for field in fields(parameters):
        value = getattr(parameters, field.name)
        if value is not None and _on_wire(name, field.name):
            values[field.name] = value
    if values.get("model"):
        values["model"] = with_digest(values["model"], model_digest)
    for parameter in (metric.info.judge_parameter, metric.info.grader_parameter):
        # Leave out an unused judge or grader.
        if named := values.pop(parameter, ""):
            digest = beside.get(parameter, "")
            values[parameter] = with_digest(named, digest) if digest else named
    if "prompt" in values:
        values["prompt"] = with_digest(parameters.prompt_name, parameters.prompt_digest)
    if reference_set:
        values["reference_set"] = reference_set
    return join_line(name, values, version=metric.info.version)


def _on_wire(metric_name: str, field_name: str) -> bool:
    message = types_pb2.MetricSpec.DESCRIPTOR.fields_by_name[metric_name].message_type
    return message is not None and field_name in message.fields_by_name


@cache
def _fields(parameters_type: type, message_name: str) -> tuple[_Field, ...]:
    descriptor = types_pb2.DESCRIPTOR.message_types_by_name[message_name.rpartition(".")[2]]
    found = {field.name for field in fields(parameters_type)}
    on_wire = {field.name for field in descriptor.fields}
    if on_wire - found:
        raise TypeError(f"{parameters_type.__name__} lacks {sorted(on_wire - found)} of {message_name}")
    return tuple(map(_field, descriptor.fields))


def _field(descriptor: FieldDescriptor) -> _Field:
    by_number: dict[int, Any] = {}
    if descriptor.enum_type is not None:
        enum = getattr(choices, descriptor.enum_type.name)
        by_number = {number: enum(tail) for number, tail in descriptors.choices(descriptor.enum_type).items()}
    return _Field(
        name=descriptor.name,
        has_presence=descriptor.has_presence,
        by_number=by_number,
        by_value={value: number for number, value in by_number.items()},
    )
