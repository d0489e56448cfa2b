"""Every metric of the wire format is there, with the parameters of the wire format."""

import dataclasses

import pytest

from gradewire_proto.v1 import types_pb2
from gradewire_server.metrics.registry import COMPARISONS, REGISTRY

SPEC = types_pb2.MetricSpec.DESCRIPTOR
ALL = {**REGISTRY, **COMPARISONS}


def test_the_metrics_are_those_of_the_wire_format() -> None:
    assert set(ALL) == {field.name for field in SPEC.oneofs_by_name["metric"].fields}


@pytest.mark.parametrize("name", ALL)
def test_parameters_are_those_of_the_wire_format(name: str) -> None:
    metric = ALL[name]
    wire = [field.name for field in SPEC.fields_by_name[name].message_type.fields]
    # Whose fit was filled in is told, not asked for, and where prompts are looked up is the server's affair.
    own = {"calibration", "prompts"}
    fields = [field.name for field in dataclasses.fields(metric.parameters_type) if field.name not in own]
    assert sorted(fields) == sorted(wire)  # what people see is the order of the list below
    assert [parameter.name for parameter in metric.info.parameters] == wire


@pytest.mark.parametrize("name", ALL)
def test_every_metric_says_what_it_is(name: str) -> None:
    info = ALL[name].info
    assert info.name == name
    assert info.version >= 1
    assert info.minimum < info.maximum
    assert info.citation
    assert info.description
    kinds = (info.needs_model, info.needs_judge, info.needs_grader)
    assert any(kinds) == any(parameter.name == "model" for parameter in info.parameters)
    assert sum(kinds) <= 1


@pytest.mark.parametrize(
    ("enum", "name", "field"),
    [
        ("SmilePreset", "smile", "preset"),
        ("SyntheticMode", "smile", "synthetic"),
        ("LabelValue", "lave", "value"),
        ("BinaryQuestions", "lave", "binary"),
        ("LaveMode", "lave", "mode"),
        ("Demonstrations", "lave", "demonstrations"),
        ("GradeStyle", "judge_grade", "style"),
        ("VerdictStyle", "judge_verdict", "style"),
        ("CompareMode", "compare", "mode"),
        ("CompareDecision", "compare", "decision"),
    ],
)
def test_enum_values_are_the_tails_of_the_wire_names(enum: str, name: str, field: str) -> None:
    values = types_pb2.DESCRIPTOR.enum_types_by_name[enum].values
    prefix = values[0].name.removesuffix("UNSPECIFIED")
    wire = [value.name.removeprefix(prefix).lower() for value in values[1:]]
    parameters = ALL[name].parameters_type()
    assert [str(member) for member in type(getattr(parameters, field))] == wire


def test_who_asks_a_judge_is_told_what_that_is_worth_beside_smile() -> None:
    judging = [metric.info for metric in REGISTRY.values() if metric.info.needs_judge]
    assert len(judging) == 4
    assert all("smile" in info.advice and "docs/" in info.advice for info in judging)
    assert "docs/" in REGISTRY["grader"].info.advice
    others = [each.info for each in REGISTRY.values() if not (each.info.needs_judge or each.info.needs_grader)]
    assert not any(info.advice for info in others)
