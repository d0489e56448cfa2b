"""What is wrong with JSON that is no message, by the path of the field; protobuf's own words often name none."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor

_MOST_LISTED: Final = 30
_MOST_CHARACTERS: Final = 80
_INTEGERS: Final = {
    FieldDescriptor.CPPTYPE_INT32: (-(1 << 31), (1 << 31) - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, (1 << 32) - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(1 << 63), (1 << 63) - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, (1 << 64) - 1),
}
_FLOATS: Final = (FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT)


@dataclass(frozen=True, slots=True)
class Fault:
    """One of them.

    Attributes:
        at: Path of the field, as the caller names it: ``items[1].id``; empty for the message itself.
        what: What the field takes.
    """

    at: str
    what: str


def find_fault(value: object, kind: Descriptor) -> Fault | None:
    """The first fault of a JSON value that is to be a message; None where none is found."""
    return next(_of_message(value, kind, ""), None)


def _of_message(value: object, kind: Descriptor, at: str) -> Iterator[Fault]:
    if not isinstance(value, dict):
        yield Fault(at, "takes an object")
        return
    fields = {field.json_name: field for field in kind.fields} | {field.name: field for field in kind.fields}
    given: dict[str, str] = {}
    chosen: dict[str, str] = {}
    for name, held in value.items():
        field, path = fields.get(name), f"{at}.{name}".lstrip(".")
        if field is None:
            there = ", ".join(sorted(field.json_name for field in kind.fields)[:_MOST_LISTED])
            shown = f"{at}.{name[:_MOST_CHARACTERS]}".lstrip(".")
            yield Fault(
                shown, f"there is no such field; {kind.name} has {there}" if there else "there is no such field"
            )
            return
        if given.setdefault(field.name, name) != name:
            yield Fault(path, f"is there twice, as {given[field.name]} too")
        oneof = field.containing_oneof
        if oneof is not None and held is not None and chosen.setdefault(oneof.name, name) != name:
            yield Fault(at, f"takes one of its fields at a time: both {chosen[oneof.name]} and {name} are set")
        if held is not None:
            yield from _of_field(held, field, path)


def _of_field(value: object, field: FieldDescriptor, at: str) -> Iterator[Fault]:
    held = field.message_type
    if held is not None and held.GetOptions().map_entry:
        if not isinstance(value, dict):
            yield Fault(at, "takes an object")
            return
        for key, each in value.items():
            yield from _of_value(each, held.fields_by_name["value"], f"{at}[{key[:_MOST_CHARACTERS]}]")
    elif field.is_repeated:
        if not isinstance(value, list):
            yield Fault(at, "takes a list")
            return
        for index, each in enumerate(value):
            yield from _of_value(each, field, f"{at}[{index}]")
    else:
        yield from _of_value(value, field, at)


def _of_value(value: object, field: FieldDescriptor, at: str) -> Iterator[Fault]:
    if field.message_type is not None:
        yield from _of_message(value, field.message_type, at)
    elif not _fits(value, field):
        yield Fault(at, _wanted(field))


def _fits(value: Any, field: FieldDescriptor) -> bool:
    kind = field.cpp_type
    if field.enum_type is not None:
        return value in field.enum_type.values_by_name if isinstance(value, str) else type(value) is int
    if kind == FieldDescriptor.CPPTYPE_BOOL:
        return isinstance(value, bool)
    if kind == FieldDescriptor.CPPTYPE_STRING:
        return isinstance(value, str) and (field.type == FieldDescriptor.TYPE_BYTES or _is_text(value))
    number = _number(value)
    if number is None:
        return False
    if kind in _FLOATS:
        return isinstance(value, str) or math.isfinite(number)
    least, most = _INTEGERS[kind]
    return math.isfinite(number) and number == int(number) and least <= int(number) <= most


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        return value if isinstance(value, int) else float(value)
    except ValueError:
        return None


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:  # half of a pair, "\\ud800"
        return False
    return True


def _wanted(field: FieldDescriptor) -> str:
    if field.enum_type is not None:
        return f"takes one of {', '.join(value.name for value in field.enum_type.values)}"
    if field.type == FieldDescriptor.TYPE_BYTES:
        return "takes bytes as base64"
    kind = field.cpp_type
    if kind in _INTEGERS:
        least, most = _INTEGERS[kind]
        return f"takes a whole number from {least} to {most}"
    if kind in _FLOATS:
        return 'takes a number, or "NaN", "Infinity", "-Infinity"'
    return "takes true or false" if kind == FieldDescriptor.CPPTYPE_BOOL else "takes a text of whole characters"
