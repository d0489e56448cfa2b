"""Strings of metrics have bounds, and none without one gets into the wire format."""

from typing import Any

import pytest
from google.protobuf.descriptor import FieldDescriptor
from hypothesis import given
from hypothesis import strategies as st
from tests.support.engines.hash_engine import HashEngine
from tests.support.servers.handlers import planner_over
from tests.support.servers.wire import EXACT

from gradewire_proto.conventions.string_bounds import MAX_SPEC_BYTES, PARAMETER_BYTES, byte_count
from gradewire_proto.v1 import references_pb2, types_pb2
from gradewire_server.domain.metric import ParameterError
from gradewire_server.domain.result import Failure, Status
from gradewire_server.metrics.registry import REGISTRY
from gradewire_server.requests.errors import InvalidRequestError
from gradewire_server.requests.string_bounds import check_strings

SPEC = types_pb2.MetricSpec.DESCRIPTOR
UNKNOWN = b"\xfa\x7f\xff\x9f\x06" + b"x" * ((6 << 14) + 0xFFF)
"""A field that no message of ours has, of 100 kB."""


def strings() -> list[tuple[str, str]]:
    """Metric and field of all strings among the parameters of metrics."""
    return [
        (metric.name, field.name)
        for metric in SPEC.fields
        if metric.message_type is not None and metric.name in REGISTRY
        for field in metric.message_type.fields
        if field.type == FieldDescriptor.TYPE_STRING
    ]


def spec(metric: str, field: str, text: str) -> types_pb2.MetricSpec:
    made = types_pb2.MetricSpec()
    setattr(getattr(made, metric), field, text)
    return made


def test_every_metric_has_its_bounds() -> None:
    for metric in SPEC.fields:
        assert metric.message_type is not None
        check_strings(getattr(types_pb2.MetricSpec(), metric.name))
    check_strings(references_pb2.SyntheticGeneration())


@pytest.mark.parametrize(("metric", "field"), strings())
def test_a_string_beyond_its_bound_is_refused_before_it_is_looked_up(metric: str, field: str) -> None:
    bound = PARAMETER_BYTES[field]
    check_strings(getattr(spec(metric, field, "é" * (bound // 2)), metric))
    long = spec(metric, field, "é" * (bound // 2) + "x")
    plan, _ = planner_over(HashEngine(), REGISTRY).plan([long, EXACT], "metrics")
    assert plan.request == Failure(
        Status.INVALID_PARAMETER,
        f"metrics[0].{metric}.{field}: has {bound + 1} bytes, at most {bound} are allowed",
    )
    assert plan.provenance.ByteSize() < 100
    assert plan.provenance.metric.WhichOneof("metric") == plan.provenance.name == metric


@given(st.sampled_from(["model", "prompt"]), st.text(max_size=300))
def test_a_string_is_refused_exactly_when_its_bytes_exceed_the_bound(field: str, text: str) -> None:
    message: Any = types_pb2.LaveParameters(**{field: text})
    if byte_count(text) <= PARAMETER_BYTES[field]:
        check_strings(message)
    else:
        with pytest.raises(ParameterError, match=f"{field}: has {len(text.encode())} bytes"):
            check_strings(message)


def test_fields_that_nobody_knows_do_not_come_back() -> None:
    parameters = types_pb2.SmileParameters.FromString(UNKNOWN[:2] + b"\x03abc")
    parameters.sentence_weight = 2
    (plan,) = planner_over(HashEngine(), REGISTRY).plan([types_pb2.MetricSpec(smile=parameters)], "metrics")
    assert isinstance(plan.request, Failure)
    assert plan.provenance.metric == types_pb2.MetricSpec(smile=types_pb2.SmileParameters(sentence_weight=2))
    assert b"abc" not in plan.provenance.SerializeToString()


@pytest.mark.parametrize("model", ["", "absent"])
def test_a_metric_too_large_as_a_whole_is_an_error_of_the_call(model: str) -> None:
    message = types_pb2.MetricSpec(smile=types_pb2.SmileParameters.FromString(UNKNOWN))
    message.smile.model = model
    with pytest.raises(
        InvalidRequestError, match=rf"has {message.ByteSize()} bytes, at most {MAX_SPEC_BYTES}"
    ) as caught:
        planner_over(HashEngine(), REGISTRY).plan([EXACT, message], "metrics")
    assert caught.value.field == "metrics[1].smile"
