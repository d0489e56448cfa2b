"""The gateway's OpenAPI 3.1 document.

The gRPC methods are described by their descriptors. Descriptions of all other methods come from ``openapi.json``.

The schemas of messages and enums are JSON Schemas (2020-12) for protobuf's JSON format.
"""

import json
from collections.abc import Sequence
from importlib import resources
from importlib.metadata import version
from typing import Any, Final, TypeAlias

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

from gradewire_gateway.json_methods import JSON_TYPE, LINES_TYPE
from gradewire_gateway.metric_identifiers import METRIC
from gradewire_gateway.page import ACCESS_PATH, REPORT_PATH
from gradewire_gateway.problems import CODE_TABLE, MEDIA_TYPE
from gradewire_gateway.wire import FLOATS, INTEGERS, RpcMethod, all_methods, descriptor_of
from gradewire_proto.descriptors import all_comments

Schema: TypeAlias = dict[str, Any]

_PAGE_PATHS: Final = ("/", ACCESS_PATH, REPORT_PATH)
_PAGE_SCHEMAS: Final = ("PageAccess", "ScoredRow")
_WITHOUT_PROBLEMS: Final = ("/", "/healthz", "/openapi.json")
_OWN_STATUSES: Final = (408, 413, 415, 421)
"""Statuses that only the gateway returns. All other statuses belong to gRPC codes."""
_TEXT_INTEGERS: Final = {
    FieldDescriptor.CPPTYPE_INT64: "^-?[0-9]{1,18}$",
    FieldDescriptor.CPPTYPE_UINT64: "^[0-9]{1,19}$",
}
"""Patterns for 64-bit integers, which are strings in JSON because JavaScript's numbers have only 53 bits."""
_BASE64: Final = "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
_IDENTIFIER: Final = {
    "type": "string",
    "description": "A metric identifier, such as smile:fast, correctness?grader=none, or the line in a provenance.",
    "examples": ["correctness", "smile:fast"],
}
_NOT_FINITE: Final = ("NaN", "Infinity", "-Infinity")


def document(*, with_page: bool = True) -> dict[str, Any]:
    """Return the document, with or without the page and the endpoints that the page calls."""
    text = resources.files("gradewire_gateway").joinpath("openapi.json").read_text("utf-8")
    found: dict[str, Any] = json.loads(text)
    found["info"]["version"] = version("gradewire")
    paths, schemas = found["paths"], found["components"]["schemas"]
    for name in () if with_page else _PAGE_PATHS:
        del paths[name]
    for name in () if with_page else _PAGE_SCHEMAS:
        del schemas[name]
    problems = _problems()
    for path, operations in paths.items():
        for operation in () if path in _WITHOUT_PROBLEMS else operations.values():
            operation["responses"] |= problems
    messages = Schemas()
    paths |= {method.path: {"post": _operation(method, messages, problems)} for method in all_methods()}
    schemas |= dict(sorted(messages.found.items()))
    return found


def _operation(method: RpcMethod, schemas: "Schemas", problems: Schema) -> Schema:
    request = schemas.message(descriptor_of(method.request_type))
    reply = schemas.message(descriptor_of(method.reply_type))
    return {
        "operationId": f"{method.service.rpartition('.')[2]}.{method.name}",
        "tags": [method.service],
        **described(f"{method.service}.{method.name}"),
        "parameters": [{"$ref": "#/components/parameters/Timeout"}, {"$ref": "#/components/parameters/RequestId"}],
        "requestBody": {"required": True, "content": _content(request, lines=method.client_streaming)},
        "responses": {
            "200": {"description": "The reply.", "content": _content(reply, lines=method.server_streaming)},
            **problems,
        },
    }


def _content(schema: Schema, *, lines: bool) -> dict[str, Any]:
    if not lines:
        return {JSON_TYPE: {"schema": schema}}
    # Use an extension like OpenAPI 3.2's `itemSchema`, because 3.1 has no keyword for a sequence of messages.
    note = "One message per line."
    return {LINES_TYPE: {"schema": {"type": "string", "description": note}, "x-item-schema": schema}}


def _problems() -> dict[str, Any]:
    statuses = sorted({row.status for row in CODE_TABLE.values()} | set(_OWN_STATUSES))
    codes = {
        status: sorted(code.name.lower() for code, row in CODE_TABLE.items() if row.status == status)
        for status in statuses
    }
    return {
        str(status): {
            "description": f"A problem: {', '.join(codes[status])}." if codes[status] else "A problem in the gateway.",
            "content": {MEDIA_TYPE: {"schema": reference("Problem")}},
        }
        for status in statuses
    }


def reference(name: str) -> Schema:
    """Return a reference to a schema in the document."""
    return {"$ref": f"#/components/schemas/{name}"}


def described(name: str) -> Schema:
    """Return the description of a proto element by its full name, or {} if the element has no comment."""
    comment = all_comments().get(name)
    return {"description": comment} if comment else {}


class Schemas:
    """The schemas of messages and of everything in them, by name without the package."""

    def __init__(self) -> None:
        self.found: dict[str, Schema] = {}

    def message(self, descriptor: Descriptor) -> Schema:
        """Return a reference to a message's schema."""
        name = _name(descriptor)
        if name not in self.found:
            self.found[name] = {}  # a message may contain a message of its own type
            self.found[name] = {
                **described(descriptor.full_name),
                "type": "object",
                "properties": {
                    field.json_name: self._field(field) | described(field.full_name) for field in descriptor.fields
                },
                "additionalProperties": False,
                **_choices(descriptor),
            }
        return reference(name)

    def _enum(self, descriptor: EnumDescriptor) -> Schema:
        name = _name(descriptor)
        if name not in self.found:
            values = [value.name for value in descriptor.values]
            self.found[name] = {"type": "string", "enum": values} | _enum_description(descriptor)
        return reference(name)

    def _field(self, field: FieldDescriptor) -> Schema:
        held = field.message_type
        if held is not None and held.GetOptions().map_entry:
            return {"type": "object", "additionalProperties": self._value(held.fields_by_name["value"])}
        value = self._value(field)
        if field.is_repeated and held is not None and held.full_name == METRIC:
            return {"type": "array", "items": {"anyOf": [value, _IDENTIFIER]}}
        if field.is_repeated:
            return {"type": "array", "items": value}
        return value if field.has_presence or field.enum_type is not None else {**value, "default": _default(field)}

    def _value(self, field: FieldDescriptor) -> Schema:
        if field.message_type is not None:
            return self.message(field.message_type)
        if field.enum_type is not None:
            return self._enum(field.enum_type)
        return _scalar(field)


def _enum_description(descriptor: EnumDescriptor) -> Schema:
    """Return the descriptions of an enum and its values. JSON Schema has no keyword for the values' descriptions."""
    comments = all_comments()
    values = {value.name: comments.get(f"{descriptor.full_name}.{value.name}") for value in descriptor.values}
    texts = [comments.get(descriptor.full_name), *(f"{name}: {text}" for name, text in values.items() if text)]
    text = "\n\n".join(filter(None, texts))
    return {"description": text} if text else {}


def _scalar(field: FieldDescriptor) -> Schema:
    if field.type == FieldDescriptor.TYPE_BYTES:
        return {"type": "string", "contentEncoding": "base64", "pattern": _BASE64}
    kind = field.cpp_type
    if kind in FLOATS:
        return {"anyOf": [{"type": "number"}, {"type": "string", "enum": list(_NOT_FINITE)}]}
    if kind in _TEXT_INTEGERS:
        return {"type": "string", "pattern": _TEXT_INTEGERS[kind]}
    if kind in INTEGERS:
        least, most = INTEGERS[kind]
        return {"type": "integer", "minimum": least, "maximum": most}
    return {"type": "boolean" if kind == FieldDescriptor.CPPTYPE_BOOL else "string"}


def _default(field: FieldDescriptor) -> object:
    """Return the value of a field that is missing in JSON."""
    if field.type == FieldDescriptor.TYPE_BYTES:
        return ""
    return str(field.default_value) if field.cpp_type in _TEXT_INTEGERS else field.default_value


def _choices(descriptor: Descriptor) -> Schema:
    """Return a schema that allows at most one field of each oneof. Skip oneofs that only mark an optional field."""
    groups = [
        [field.json_name for field in oneof.fields]
        for oneof in descriptor.oneofs
        if not _documents_presence(oneof.name, oneof.fields)
    ]
    if not groups:
        return {}
    if len(groups) == 1 and len(groups[0]) == len(descriptor.fields):
        return {"maxProperties": 1}
    beside = [field.json_name for field in descriptor.fields if field.json_name not in groups[0]]
    if len(groups) == 1 and len(beside) == 1:
        # A `oneOf` over a metric's two dozen names would say the same, but is too slow for programs that draw requests.
        return {"anyOf": [{"maxProperties": 1}, {"required": beside, "maxProperties": 2}]}
    return {"allOf": [_at_most_one(names) for names in groups]}


def _at_most_one(names: list[str]) -> Schema:
    return {
        "oneOf": [{"required": [name]} for name in names] + [{"not": {"anyOf": [{"required": [n]} for n in names]}}]
    }


def _documents_presence(oneof: str, fields: Sequence[FieldDescriptor]) -> bool:
    return len(fields) == 1 and oneof == f"_{fields[0].name}"


def _name(descriptor: Descriptor | EnumDescriptor) -> str:
    return descriptor.full_name.removeprefix(f"{descriptor.file.package}.")
