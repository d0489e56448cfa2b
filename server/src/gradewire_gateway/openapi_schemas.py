"""JSON Schemas (2020-12, as OpenAPI 3.1 has them) of messages and enums, in the JSON form of protobuf."""

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

from gradewire_proto.descriptors import all_comments

Schema: TypeAlias = dict[str, Any]

_INTEGERS: Final = {
    FieldDescriptor.CPPTYPE_INT32: (-(1 << 31), (1 << 31) - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, (1 << 32) - 1),
}
_TEXT_INTEGERS: Final = {
    FieldDescriptor.CPPTYPE_INT64: "^-?[0-9]{1,18}$",
    FieldDescriptor.CPPTYPE_UINT64: "^[0-9]{1,19}$",
}
"""64 bits are texts: a number of JavaScript has 53."""
_FLOATS: Final = (FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT)
_BASE64: Final = "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
_NOT_FINITE: Final = ("NaN", "Infinity", "-Infinity")


def reference(name: str) -> Schema:
    """Points to a schema of the document."""
    return {"$ref": f"#/components/schemas/{name}"}


def described(name: str) -> Schema:
    """What the protos say of something, by its full name."""
    comment = all_comments().get(name)
    return {"description": comment} if comment else {}


class Schemas:
    """Gathers the schemas of messages and of all that is in them.

    Attributes:
        found: By the name in the document, which is the message's without its package.
    """

    def __init__(self) -> None:
        self.found: dict[str, Schema] = {}

    def message(self, descriptor: Descriptor) -> Schema:
        """A reference to a message's schema."""
        name = _name(descriptor)
        if name not in self.found:
            self.found[name] = {}  # a message may hold itself
            self.found[name] = {
                **described(descriptor.full_name),
                "type": "object",
                "properties": {field.json_name: self._property(field) for field in descriptor.fields},
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

    def _property(self, field: FieldDescriptor) -> Schema:
        return self._field(field) | described(field.full_name)

    def _field(self, field: FieldDescriptor) -> Schema:
        held = field.message_type
        if held is not None and held.GetOptions().map_entry:
            return {"type": "object", "additionalProperties": self._value(held.fields_by_name["value"])}
        value = self._value(field)
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
    """Of the enum and of its values, which JSON Schema has no place for; in the protos values stand beside the enum."""
    comments = all_comments()
    values = {value.name: comments.get(f"{descriptor.full_name}.{value.name}") for value in descriptor.values}
    said = [comments.get(descriptor.full_name), *(f"{name}: {text}" for name, text in values.items() if text)]
    text = "\n\n".join(filter(None, said))
    return {"description": text} if text else {}


def _scalar(field: FieldDescriptor) -> Schema:
    if field.type == FieldDescriptor.TYPE_BYTES:
        return {"type": "string", "contentEncoding": "base64", "pattern": _BASE64}
    kind = field.cpp_type
    if kind in _FLOATS:
        return {"anyOf": [{"type": "number"}, {"type": "string", "enum": list(_NOT_FINITE)}]}
    if kind in _INTEGERS:
        least, most = _INTEGERS[kind]
        return {"type": "integer", "minimum": least, "maximum": most}
    if kind in _TEXT_INTEGERS:
        return {"type": "string", "pattern": _TEXT_INTEGERS[kind]}
    return {"type": "boolean" if kind == FieldDescriptor.CPPTYPE_BOOL else "string"}


def _default(field: FieldDescriptor) -> object:
    """What a field that is left out of JSON means."""
    if field.type == FieldDescriptor.TYPE_BYTES:
        return ""
    return str(field.default_value) if field.cpp_type in _TEXT_INTEGERS else field.default_value


def _choices(descriptor: Descriptor) -> Schema:
    """At most one field of each oneof, but for those that only say whether a field is there."""
    groups = [
        [field.json_name for field in oneof.fields]
        for oneof in descriptor.oneofs
        if not _documents_presence(oneof.name, oneof.fields)
    ]
    if not groups:
        return {}
    if len(groups) == 1 and len(groups[0]) == len(descriptor.fields):
        return {"maxProperties": 1}
    return {"allOf": [_at_most_one(names) for names in groups]}


def _at_most_one(names: list[str]) -> Schema:
    return {
        "oneOf": [{"required": [name]} for name in names] + [{"not": {"anyOf": [{"required": [n]} for n in names]}}]
    }


def _documents_presence(oneof: str, fields: Sequence[FieldDescriptor]) -> bool:
    return len(fields) == 1 and oneof == f"_{fields[0].name}"


def _name(descriptor: Descriptor | EnumDescriptor) -> str:
    return descriptor.full_name.removeprefix(f"{descriptor.file.package}.")
