"""Parts of scores: one type per kind, with the fields of its message in types.proto."""

from collections.abc import Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import get_type_hints

from gradewire_proto import parts
from gradewire_proto.parts import *
from gradewire_proto.parts import PART_TYPES

__all__ = ["PART_FIELDS", "PART_TYPES"]
__all__ += parts.__all__

PART_FIELDS: Mapping[str, object] = MappingProxyType(
    {field.name: get_type_hints(kind)[field.name] for kind in PART_TYPES.values() for field in fields(kind)}
)
"""Type by name of all fields; where kinds share a name, they share its type."""
