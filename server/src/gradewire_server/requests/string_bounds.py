"""Bounds of a request's strings, checked before anything copies or quotes them."""

from functools import cache
from typing import Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from gradewire_proto.conventions.string_bounds import PARAMETER_BYTES, byte_count
from gradewire_server.domain.metric import ParameterError

LEAST_BOUND_BYTES: Final = min(PARAMETER_BYTES.values())
"""In a message of no more than this nothing is too long."""
_MAX_UTF8_BYTES_PER_CHAR: Final = 4


def check_strings(message: Message) -> None:
    """Raises ParameterError where a string is longer than its kind may be; the error names field, size and bound.

    Args:
        message: Parameters of a metric, or how synthetic answers are written.
    """
    for name, bound in _bounds(message.DESCRIPTOR):
        text = getattr(message, name)
        if len(text) * _MAX_UTF8_BYTES_PER_CHAR > bound and (size := byte_count(text)) > bound:
            raise ParameterError(name, f"has {size} bytes, at most {bound} are allowed")


@cache
def _bounds(descriptor: Descriptor) -> tuple[tuple[str, int], ...]:
    """Names of a message's strings with their bounds; a string without one is a defect, which a test finds."""
    strings = [field.name for field in descriptor.fields if field.type == FieldDescriptor.TYPE_STRING]
    return tuple((name, PARAMETER_BYTES[name]) for name in strings)
