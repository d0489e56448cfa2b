"""The base class of all metrics, and the metrics' parameters, which come from types.proto."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from numbers import Integral, Real
from typing import Any, ClassVar

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from gradewire.errors import InvalidRequest
from gradewire_proto.descriptors import choices_of
from gradewire_proto.v1 import types_pb2

_MAX_UINT32 = 2**32 - 1
_MAX_DIGITS = len(str(_MAX_UINT32))


class ParameterKind(Enum):
    """Types of parameter values, worded for error messages."""

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
# Python types of the values that need no conversion.
_PLAIN = {ParameterKind.CHOICE: str, ParameterKind.TEXT: str, ParameterKind.FLAG: bool}


@dataclass(frozen=True, slots=True)
class WireParameter:
    """A metric's parameter. It has the same name in the message and in the dataclass.

    Attributes:
        choices: For a CHOICE, enum numbers by value ("fast" for SMILE_PRESET_FAST), in the order of types.proto.
        has_presence: True if the message distinguishes an unset value from zero.
    """

    metric: str
    name: str
    kind: ParameterKind
    choices: Mapping[str, int]
    has_presence: bool

    def checked(self, value: Any) -> Any:
        """Return a value, after converting a count to int, or a number to float.

        Raises:
            InvalidRequest: The value has a wrong type, or is not one of the choices. The server checks ranges.
        """
        if self.kind is ParameterKind.CHOICE and not (isinstance(value, str) and value in self.choices):
            raise InvalidRequest(f"{self.metric} has no {self.name} {value!r}: use one of {self.allowed}")
        if self.kind is ParameterKind.COUNT and _is_count(value):
            return int(value)
        if self.kind is ParameterKind.NUMBER and not isinstance(value, bool) and isinstance(value, Real):
            return float(value)
        if self.kind in _PLAIN and isinstance(value, _PLAIN[self.kind]):
            return value
        raise InvalidRequest(f"{self.metric}: {self.name} must be {self.allowed}, not {value!r}")

    def parse(self, text: str) -> Any:
        """Parse a value, without checking choices.

        Raises:
            InvalidRequest: The string is not a value of the parameter's type.
        """
        if self.kind is ParameterKind.FLAG and text in {"true", "false"}:
            return text == "true"
        if self.kind is ParameterKind.COUNT and text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS:
            return int(text)
        if self.kind is ParameterKind.NUMBER:
            try:
                return float(text)
            except ValueError:
                raise InvalidRequest(f"{self.metric}: {self.name}={text!r} is not a number") from None
        if self.kind in {ParameterKind.CHOICE, ParameterKind.TEXT}:
            return text
        raise InvalidRequest(f"{self.metric}: {self.name}={text!r} is not {self.allowed}")

    @property
    def allowed(self) -> str:
        """The allowed values, in words."""
        return ", ".join(self.choices) if self.kind is ParameterKind.CHOICE else self.kind.value

    def write(self, message: Message, value: Any) -> None:
        """Write a value into a message; None leaves the field unset."""
        if value is not None:
            setattr(message, self.name, self.choices[value] if self.kind is ParameterKind.CHOICE else value)

    def read(self, message: Message) -> Any:
        """Return the value in a message; None if the value is unset.

        Raises:
            InvalidRequest: The value is a choice that this client does not know.
        """
        value = getattr(message, self.name)
        if not (message.HasField(self.name) if self.has_presence else value):
            return None
        if self.kind is not ParameterKind.CHOICE:
            return value
        for choice, number in self.choices.items():
            if number == value:
                return choice
        raise InvalidRequest(f"{self.metric}: {self.name} is {value}, unknown to this client: upgrade the client")


@cache
def wire_parameters(metric: str) -> Mapping[str, WireParameter]:
    """Return a metric's parameters by name, in alphabetical order. `metric` is the metric's field in `MetricSpec`."""
    message = types_pb2.MetricSpec.DESCRIPTOR.fields_by_name[metric].message_type
    fields = sorted(message.fields, key=lambda field: field.name) if message is not None else ()
    return {
        field.name: WireParameter(
            metric=metric,
            name=field.name,
            kind=_KINDS[field.cpp_type],
            choices=choices_of(metric, field),
            has_presence=field.has_presence,
        )
        for field in fields
    }


def _is_count(value: object) -> bool:
    return not isinstance(value, bool) and isinstance(value, Integral) and 0 <= int(value) <= _MAX_UINT32


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A metric as a value: a name and typed parameters.

    None means the call's default or, if the call has no default, the server's default. The fields are the same as in
    the metric's message in types.proto. Some metrics have a field `reference_set`, which names the set to use if a
    parameter is "prepared".

    Attributes:
        version: Required version of the metric's definition; None means any version.

    Raises:
        InvalidRequest: A value has a wrong type, or is not one of the choices. The server checks ranges.
    """

    name: ClassVar[str]
    # True if `model` is a judge.
    needs_judge: ClassVar[bool] = False
    # True if `model` is a grader, which reads question, reference and answer together.
    needs_grader: ClassVar[bool] = False
    # Name of the judge's parameter if the metric has both an encoder and a judge; "" for other metrics.
    judge_parameter: ClassVar[str] = ""
    # Requirements on an item, in addition to a reference, if all parameters have their defaults.
    needs_question: ClassVar[bool] = False
    least_references: ClassVar[int] = 1
    needs_values: ClassVar[bool] = False
    # True if the metric reads the options of multiple-choice questions.
    needs_choices: ClassVar[bool] = False
    # True if the metric counts words over several items' references, by default over all items of the request.
    needs_corpus: ClassVar[bool] = False
    # True if the metric compares a pair of answers instead of grading an item.
    needs_pair: ClassVar[bool] = False
    version: int | None = None

    def __post_init__(self) -> None:
        for name, parameter in wire_parameters(self.name).items():
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, parameter.checked(value))

    def to_spec(self) -> types_pb2.MetricSpec:
        """Return the metric's message, without the reference set, which belongs to the request."""
        spec = types_pb2.MetricSpec()
        message = getattr(spec, self.name)
        message.SetInParent()
        for name, parameter in wire_parameters(self.name).items():
            parameter.write(message, getattr(self, name))
        return spec

    @classmethod
    def asks_judge(cls) -> bool:
        """Return True if the metric may ask a judge, which takes seconds per item instead of milliseconds."""
        return cls.needs_judge or bool(cls.judge_parameter)

    @property
    def prepared_parameter(self) -> str | None:
        """The parameter whose value "prepared" makes the metric read a reference set; None for other metrics."""
        return next(
            (name for name, parameter in wire_parameters(self.name).items() if "prepared" in parameter.choices), None
        )

    @property
    def reads_prepared(self) -> bool:
        """True if the metric's parameters make the metric read the call's reference set."""
        return self.prepared_parameter is not None and getattr(self, self.prepared_parameter) == "prepared"
