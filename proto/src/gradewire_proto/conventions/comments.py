"""What the comments of the protos say; `make proto` writes them beside the generated code."""

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType


@cache
def all_comments() -> Mapping[str, str]:
    """Comments, each on one line, by the full name of service, method, message, field, enum or value."""
    text = files("gradewire_proto.v1").joinpath("comments.json").read_text("utf-8")
    found: dict[str, str] = json.loads(text)
    return MappingProxyType(found)
