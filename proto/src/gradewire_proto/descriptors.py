"""Names, choices and comments that the protos give to metric parameters."""

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Final

from google.protobuf.descriptor import EnumDescriptor

from gradewire_proto.v1 import types_pb2

_CORPUS: Final = types_pb2.Corpus.DESCRIPTOR.full_name
_TAKES_REQUEST: Final = frozenset({"cider"})
"""Metrics that take the request's corpus when their message does not say, for they are nothing without weights."""


def choices(enum: EnumDescriptor) -> dict[int, str]:
    """Lower-case ends of an enum's names by number: SMILE_PRESET_FAST is "fast"; UNSPECIFIED is left out."""
    prefix = enum.values_by_number[0].name.removesuffix("UNSPECIFIED")
    return {value.number: value.name.removeprefix(prefix).lower() for value in enum.values if value.number}


def choices_of(metric: str, enum: EnumDescriptor) -> dict[int, str]:
    """As `choices`, without the values of a shared enum that the metric never takes."""
    never = {types_pb2.CORPUS_NONE} if enum.full_name == _CORPUS and metric in _TAKES_REQUEST else set()
    return {number: name for number, name in choices(enum).items() if number not in never}


def corpus_of(spec: types_pb2.MetricSpec) -> int:
    """Return the number of the corpus that a metric counts its weights over, with the default filled in."""
    name = spec.WhichOneof("metric")
    field = _corpus_field(name) if name is not None else None
    if name is None or field is None:
        return types_pb2.CORPUS_NONE
    number = int(getattr(getattr(spec, name), field))
    return number or (types_pb2.CORPUS_REQUEST if name in _TAKES_REQUEST else types_pb2.CORPUS_NONE)


@cache
def _corpus_field(metric: str) -> str | None:
    message = types_pb2.MetricSpec.DESCRIPTOR.fields_by_name[metric].message_type
    fields = message.fields if message is not None else ()
    found = (field.name for field in fields if field.enum_type is not None and field.enum_type.full_name == _CORPUS)
    return next(found, None)


@cache
def all_comments() -> Mapping[str, str]:
    """Comments, each on one line, by the full name of service, method, message, field, enum or value."""
    text = files("gradewire_proto.v1").joinpath("comments.json").read_text("utf-8")
    found: dict[str, str] = json.loads(text)
    return MappingProxyType(found)
