"""docs/reference/api.md names every call, status, warning and field that callers read or write."""

from pathlib import Path
from typing import Any

import pytest

from gradewire_proto.v1 import models_pb2, references_pb2, scoring_pb2, types_pb2

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "api.md").read_text("utf-8")
SERVICES = [
    service
    for file in (scoring_pb2, references_pb2, models_pb2)
    for service in file.DESCRIPTOR.services_by_name.values()
]


@pytest.mark.parametrize("call", [f"{each.name}.{call.name}" for each in SERVICES for call in each.methods])
def test_each_call_has_a_line_and_a_section(call: str) -> None:
    section = call.partition(".")[2]
    assert f"| [`{call}`](#{section.lower()}) |" in PAGE
    assert f"\n## {section}\n" in PAGE


@pytest.mark.parametrize("enum", [types_pb2.Status, types_pb2.Warning])
def test_each_value_is_named(enum: Any) -> None:
    values = enum.DESCRIPTOR.values_by_name
    assert [name for name in values if not name.endswith("UNSPECIFIED") and f"`{name}`" not in PAGE] == []


@pytest.mark.parametrize(
    "message",
    [
        types_pb2.Item,
        types_pb2.MetricResult,
        types_pb2.Provenance,
        scoring_pb2.ScoreRequest,
        scoring_pb2.ScoreStreamRequest,
        references_pb2.PrepareRequest,
    ],
)
def test_each_field_is_named(message: Any) -> None:
    fields = message.DESCRIPTOR.fields_by_name
    assert [name for name in fields if f"`{name}`" not in PAGE] == []
