"""gRPC methods, and the conversion of messages from and to JSON. Errors contain the invalid field's path."""

import json
import pkgutil
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from types import NoneType
from typing import Any, Final, TypeAlias, TypeVar

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor, FileDescriptor, MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

import gradewire_proto.v1
from gradewire import transport
from gradewire_gateway.metric_identifiers import METRIC, parse_identifiers
from gradewire_gateway.problems import Problem, ProblemError, invalid
from gradewire_gateway.settings import MIB

RpcMethod: TypeAlias = transport.RpcMethod[Any, Any]
"""A method of any gRPC service."""

Buffer: TypeAlias = bytes | bytearray
"""JSON in the buffer in which it arrived, so that large bodies are not copied."""

DEFAULT_MODEL: Final = "default"
"""The name of the server's default judge, for clients that must name a model."""


@cache
def all_methods() -> tuple[RpcMethod, ...]:
    """Return the methods of all services of gradewire.v1, sorted by path."""
    names = [module.name for module in pkgutil.iter_modules(gradewire_proto.v1.__path__)]
    files = (_descriptor(name) for name in names if name.endswith("_pb2"))
    found = (
        _method(method)
        for file in files
        for service in file.services_by_name.values()
        for method in service.methods_by_name.values()
    )
    return tuple(sorted(found, key=lambda method: method.path))


def method_at(path: str) -> RpcMethod:
    """Return the method at this path; raise StopIteration if the path is unknown."""
    return next(method for method in all_methods() if method.path == path)


def unparsed(method: RpcMethod) -> RpcMethod:
    """Return a version of the method in which requests and replies stay bytes."""
    return replace(method, request_type=bytes, reply_type=bytes)


def descriptor_of(kind: type[Message]) -> Descriptor:
    """Return a message class's descriptor."""
    descriptor: Any = kind.DESCRIPTOR
    found: Descriptor = descriptor
    return found


def _descriptor(name: str) -> FileDescriptor:
    descriptor: FileDescriptor = import_module(f"gradewire_proto.v1.{name}").DESCRIPTOR
    return descriptor


def _method(method: MethodDescriptor) -> RpcMethod:
    return transport.RpcMethod(
        method.containing_service.full_name,
        method.name,
        GetMessageClass(method.input_type),
        GetMessageClass(method.output_type),
        client_streaming=method.client_streaming,
        server_streaming=method.server_streaming,
    )


_KINDS: Final[Mapping[type, str]] = {
    bool: "true or false",
    int: "a number",
    float: "a number",
    str: "a string",
    list: "a list",
    dict: "an object",
    NoneType: "null",
}
"""Names of the kinds of JSON values."""


def text_of(value: object, at: str) -> str:
    """Return `value` if it is a string, otherwise raise ProblemError."""
    if not isinstance(value, str):
        raise invalid(f"{at}: must be a string, not {_KINDS[type(value)]}", at)
    try:
        value.encode()
    except UnicodeEncodeError:  # a lone surrogate, such as "\\ud800"
        raise invalid(f"{at}: must be a string without lone surrogates", at) from None
    return value


def list_of(value: object, at: str) -> list[Any]:
    """Return `value` if it is a list, otherwise raise ProblemError."""
    if not isinstance(value, list):
        raise invalid(f"{at}: must be a list", at)
    return value


def object_of(value: object, at: str) -> Mapping[str, Any]:
    """Return `value` if it is a JSON object, otherwise raise ProblemError."""
    if not isinstance(value, dict):
        raise invalid(f"{at}: must be an object", at)
    return value


def count_of(value: object, at: str, most: int) -> int:
    """Return `value` if it is a whole number from 1 to `most`, otherwise raise ProblemError."""
    if type(value) is not int or not 1 <= value <= most:
        raise invalid(f"{at}: must be a whole number from 1 to {most}", at)
    return value


_MOST_LISTED: Final = 30
_MOST_CHARACTERS: Final = 80
INTEGERS: Final = {
    FieldDescriptor.CPPTYPE_INT32: (-(1 << 31), (1 << 31) - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, (1 << 32) - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(1 << 63), (1 << 63) - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, (1 << 64) - 1),
}
"""The smallest and the largest value of each integer type."""
FLOATS: Final = (FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT)


@dataclass(frozen=True, slots=True)
class Fault:
    """An invalid field's path (``items[1].id``, or "" for the whole message), and what is wrong with the field."""

    at: str
    what: str


def find_fault(value: object, kind: Descriptor) -> Fault | None:
    """Return the first fault in a message's JSON value, or None if there is no fault."""
    return next(_of_message(value, kind, ""), None)


@cache
def _fields_of(kind: Descriptor) -> Mapping[str, FieldDescriptor]:
    return {field.json_name: field for field in kind.fields} | {field.name: field for field in kind.fields}


@cache
def _messages_of(kind: Descriptor) -> Mapping[str, tuple[str, Descriptor | None, bool]]:
    """Map a field's two names (JSON and proto) to the proto name, the message type (or None) and True for a list."""
    found = {}
    for name, field in _fields_of(kind).items():
        held = field.message_type
        inner = None if held is None or held.GetOptions().map_entry else held
        found[name] = field.name, inner, field.is_repeated
    return found


def _named_twice(value: Any, kind: Descriptor) -> Fault | None:
    """Return the first field that is set under both of its names. The message must have no other fault."""
    fields = _messages_of(kind)
    given: dict[str, str] = {}
    for name, held in value.items():
        field, inner, is_list = fields[name]
        if given.setdefault(field, name) != name:
            return Fault(name, f"is set twice, also under the name {given[field]}")
        if inner is None or held is None:
            continue
        for index, each in enumerate(held if is_list else [held]):
            if (fault := _named_twice(each, inner)) is not None:
                return replace(fault, at=f"{name}{f'[{index}]' if is_list else ''}.{fault.at}")
    return None


def _of_message(value: object, kind: Descriptor, at: str) -> Iterator[Fault]:
    if not isinstance(value, dict):
        identifier = ', or a metric identifier such as "smile:fast"' if kind.full_name == METRIC else ""
        yield Fault(at, f"must be an object{identifier}")
        return
    fields = _fields_of(kind)
    given: dict[str, str] = {}
    chosen: dict[str, str] = {}
    for name, held in value.items():
        field, path = fields.get(name), f"{at}.{name}".lstrip(".")
        if field is None:
            there = ", ".join(sorted(field.json_name for field in kind.fields)[:_MOST_LISTED])
            named = f"{at}.{name[:_MOST_CHARACTERS]}".lstrip(".")
            yield Fault(named, f"does not exist; the fields of {kind.name} are {there}" if there else "does not exist")
            return
        if given.setdefault(field.name, name) != name:
            yield Fault(path, f"is set twice, also under the name {given[field.name]}")
        oneof = field.containing_oneof
        if oneof is not None and held is not None and chosen.setdefault(oneof.name, name) != name:
            yield Fault(at, f"the fields {chosen[oneof.name]} and {name} are mutually exclusive; set only one")
        if held is not None:
            yield from _of_field(held, field, path)


def _of_field(value: object, field: FieldDescriptor, at: str) -> Iterator[Fault]:
    held = field.message_type
    if held is not None and held.GetOptions().map_entry:
        if not isinstance(value, dict):
            yield Fault(at, "must be an object")
            return
        for key, each in value.items():
            yield from _of_value(each, held.fields_by_name["value"], f"{at}[{key[:_MOST_CHARACTERS]}]")
    elif field.is_repeated:
        if not isinstance(value, list):
            yield Fault(at, "must be a list")
            return
        for index, each in enumerate(value):
            yield from _of_value(each, field, f"{at}[{index}]")
    else:
        yield from _of_value(value, field, at)


def _of_value(value: object, field: FieldDescriptor, at: str) -> Iterator[Fault]:
    if field.message_type is not None:
        yield from _of_message(value, field.message_type, at)
    elif not _fits(value, field):
        yield Fault(at, _expected(field, _KINDS[type(value)]))


def _fits(value: Any, field: FieldDescriptor) -> bool:
    if field.type == FieldDescriptor.TYPE_STRING and isinstance(value, str) and value.isascii():
        return True  # most values are ASCII strings, and creating the message below takes 5 µs
    kind: Any = field.containing_type
    message = GetMessageClass(kind)()
    try:
        json_format.ParseDict({field.name: [value] if field.is_repeated else value}, message)
    except _UNFIT:
        return False
    return True


def _expected(field: FieldDescriptor, given: str) -> str:
    """Return what a field takes instead of a value of the kind `given`."""
    if field.enum_type is not None:
        return f"must be one of {', '.join(value.name for value in field.enum_type.values)}"
    if field.type == FieldDescriptor.TYPE_BYTES:
        return "must be a base64 string"
    kind = field.cpp_type
    if kind in INTEGERS:
        least, most = INTEGERS[kind]
        return f"must be a whole number from {least} to {most}"
    if kind in FLOATS:  # no field has a use for the strings "NaN" and "Infinity", which JSON of protobuf allows
        return "must be a finite number" if given == _KINDS[float] else f"must be a number, not {given}"
    if kind == FieldDescriptor.CPPTYPE_BOOL:
        return "must be true or false"
    return "must be a string without lone surrogates" if given == _KINDS[str] else f"must be a string, not {given}"


_UNFIT: Final = (
    *(json_format.Error, ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError),
    SystemError,  # protobuf raises this error for half of a surrogate pair in an enum's name
)
"""Exceptions that protobuf raises for JSON values of a wrong type."""
_MOST_VALUES: Final = 1 << 18
"""Maximum number of values in a request. Parsing that many takes tens of milliseconds and blocks other threads."""
_MOST_DIGITS: Final = 1000
"""Maximum number of digits in a number. Python needs quadratic time to parse digits, and blocks other threads."""
_STRING_OR_VALUE: Final = re.compile(rb'"[^"]*"?|([\[{,])')
"""A pattern for a string without escapes, or for a character before a value."""
_MOST_MESSAGE_CHARACTERS: Final = 300

M = TypeVar("M", bound=Message)


def read_object(data: Buffer, at: str = "") -> dict[str, Any]:
    """Return a JSON object; raise ProblemError if the JSON is invalid or repeats a name.

    The error's message contains `at`, such as "line 3".
    """
    what = at or "the body"
    if len(data) > _MOST_VALUES and _has_too_many_values(data):
        detail = f"{what} has more than {_MOST_VALUES} values; send fewer items at a time"
        raise ProblemError(Problem(413, "resource_exhausted", detail))
    try:
        value = json.loads(data.decode(), object_pairs_hook=_once, parse_int=_whole, parse_float=_fraction)
    except UnicodeDecodeError as error:
        raise invalid(f"{what} is not valid UTF-8 at byte {error.start}") from None
    except RecursionError:
        raise invalid(f"{what} is nested too deeply") from None
    except ValueError as error:  # json.JSONDecodeError too
        raise invalid(f"{what} is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise invalid(f"{what} is not a JSON object; send at least {{}}")
    return value


def read_message(data: Buffer, kind: type[M], at: str = "") -> M:
    """Return a message from JSON; raise ProblemError with the invalid field's path and with `at`, such as "line 3"."""
    value = read_object(data, at)
    descriptor = descriptor_of(kind)
    where = f"{at}: " if at else ""
    parse_identifiers(value, descriptor, where=where)
    try:
        message = json_format.ParseDict(value, kind())
        fault = _named_twice(value, descriptor)  # ParseDict would use the last value
    except Exception as error:
        fault = find_fault(value, descriptor)
        if fault is None:
            detail = " ".join(str(error).split())[:_MOST_MESSAGE_CHARACTERS]
            raise invalid(f"{where}this is not a {descriptor.name} in JSON: {detail}") from error
    if fault is not None:
        raise invalid(f"{where}{fault.at or descriptor.name}: {fault.what}", fault.at)
    return message


def write_message(message: Message) -> bytes:
    """Return a message in JSON, on one line. Write the JSON in pieces, so that other threads can run between them."""
    value = json_format.MessageToDict(message)
    members = (f"{_encode(name)}: {_written(held)}" for name, held in value.items())
    return f"{{{', '.join(members)}}}".encode()


_encode: Final = json.JSONEncoder(ensure_ascii=False).encode


def _written(value: object) -> str:
    return f"[{', '.join(map(_encode, value))}]" if isinstance(value, list) else _encode(value)


def _whole(digits: str) -> int:
    _check_length(digits)
    return int(digits)


def _fraction(digits: str) -> float:
    _check_length(digits)
    return float(digits)


def _check_length(digits: str) -> None:
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f"a number has more than {_MOST_DIGITS} digits")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = {name: value for name, value in pairs}  # noqa: C416 - unlike `dict(pairs)`, this lets other threads run
    if len(found) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise ValueError(f"the name {name[:80]!r} occurs twice in one object")
            seen.add(name)
    return found


def _has_too_many_values(data: Buffer) -> bool:
    starts = range(0, len(data), MIB)  # in pieces, so that other threads can run between them
    if sum(data.count(mark, start, start + MIB) for start in starts for mark in b"[{,") <= _MOST_VALUES:
        return False
    values, begun = 0, b""
    for start in starts:
        plain = (begun + data[start : start + MIB]).replace(rb"\\", b"").replace(rb"\"", b"")
        begun = b"\\" if plain.endswith(b"\\") else b""  # the first half of an escape
        last = b""
        for found in _STRING_OR_VALUE.finditer(plain):
            last = found[0]
            if found[1]:
                values += 1
                if values > _MOST_VALUES:
                    return True
        if last.startswith(b'"') and (last == b'"' or not last.endswith(b'"')):  # the string is not complete
            begun = b'"' + begun
    return False
