"""The parameters of a metric on the wire: their kinds, their choices and their form in a message."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from numbers import Integral, Real
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from gradewire.errors import InvalidRequest
from gradewire_proto.conventions.parameters import choices_of
from gradewire_proto.v1 import types_pb2

_MAX_UINT32 = 2**32 - 1
_MAX_DIGITS = len(str(_MAX_UINT32))


class ParameterKind(Enum):
    """What values a parameter takes; the wording is for messages."""

    CHOICE = "one of"
    FLAG = "true or false"
    COUNT = "a whole number, 0 or more"
    NUMBER = "a number"
    TEXT = "a string"


_KINDS = {
    FieldDescriptor.CPPTYPE_ENUM: ParameterKind.CHOICE,
    FieldDescriptor.CPPTYPE_BOOL: ParameterKind.FLAG,
    FieldDescriptor.CPPTYPE_UINT32: ParameterKind.COUNT,
    FieldDescriptor.CPPTYPE_DOUBLE: ParameterKind.NUMBER,
    FieldDescriptor.CPPTYPE_STRING: ParameterKind.TEXT,
}
# Kinds whose values stay as they are.
_PLAIN = {ParameterKind.CHOICE: str, ParameterKind.TEXT: str, ParameterKind.FLAG: bool}


@dataclass(frozen=True, slots=True)
class WireParameter:
    """One parameter.

    Attributes:
        metric: Name of the metric, for messages.
        name: The same in the message and in the metric's dataclass.
        kind: What values it takes.
        choices: Of a CHOICE: number on the wire by value (SMILE_PRESET_FAST is "fast"), in the order of types.proto.
        has_presence: Whether the message tells an unset value from a zero.
    """

    metric: str
    name: str
    kind: ParameterKind
    choices: Mapping[str, int]
    has_presence: bool

    def checked(self, value: Any) -> Any:
        """The value in the one form that lines are written from: counts as int, numbers as float.

        Raises:
            InvalidRequest: It is of another type, or no choice. Ranges are for the server to judge.
        """
        if self.kind is ParameterKind.CHOICE and not (isinstance(value, str) and value in self.choices):
            raise InvalidRequest(f"{self.metric} has no {self.name} {value!r}: take one of {self.allowed}")
        if self.kind is ParameterKind.COUNT and _is_count(value):
            return int(value)
        if self.kind is ParameterKind.NUMBER and not isinstance(value, bool) and isinstance(value, Real):
            return float(value)
        if self.kind in _PLAIN and isinstance(value, _PLAIN[self.kind]):
            return value
        raise InvalidRequest(f"{self.metric}: {self.name} is {self.allowed}, not {value!r}")

    def parse(self, text: str) -> Any:
        """The value that a text stands for, not yet checked.

        Raises:
            InvalidRequest: It stands for none.
        """
        if self.kind is ParameterKind.FLAG and text in {"true", "false"}:
            return text == "true"
        if self.kind is ParameterKind.COUNT and text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS:
            return int(text)
        if self.kind is ParameterKind.NUMBER:
            try:
                return float(text)
            except ValueError:
                raise InvalidRequest(f"{self.metric}: {self.name}={text!r} is no number") from None
        if self.kind in {ParameterKind.CHOICE, ParameterKind.TEXT}:
            return text
        raise InvalidRequest(f"{self.metric}: {self.name}={text!r} is not {self.allowed}")

    @property
    def allowed(self) -> str:
        """The values that it takes, in words."""
        return ", ".join(self.choices) if self.kind is ParameterKind.CHOICE else self.kind.value

    def write(self, message: Message, value: Any) -> None:
        """Writes a value into a message; None leaves it unset."""
        if value is not None:
            setattr(message, self.name, self.choices[value] if self.kind is ParameterKind.CHOICE else value)

    def read(self, message: Message) -> Any:
        """What a message says; None where it says nothing.

        Raises:
            InvalidRequest: A choice of a later version.
        """
        value = getattr(message, self.name)
        if not (message.HasField(self.name) if self.has_presence else value):
            return None
        if self.kind is not ParameterKind.CHOICE:
            return value
        for choice, number in self.choices.items():
            if number == value:
                return choice
        raise InvalidRequest(f"{self.metric}: {self.name} is number {value}, which this client does not know")


@cache
def wire_parameters(metric: str) -> Mapping[str, WireParameter]:
    """The parameters of a metric of `MetricSpec`, by name, in alphabetical order."""
    message = types_pb2.MetricSpec.DESCRIPTOR.fields_by_name[metric].message_type
    fields = sorted(message.fields, key=lambda field: field.name) if message is not None else ()
    return {
        field.name: WireParameter(
            metric=metric,
            name=field.name,
            kind=_KINDS[field.cpp_type],
            choices={name: number for number, name in _choices(metric, field).items()},
            has_presence=field.has_presence,
        )
        for field in fields
    }


def _is_count(value: object) -> bool:
    return not isinstance(value, bool) and isinstance(value, Integral) and 0 <= int(value) <= _MAX_UINT32


def _choices(metric: str, field: FieldDescriptor) -> Mapping[int, str]:
    return choices_of(metric, field.enum_type) if field.enum_type is not None else {}
