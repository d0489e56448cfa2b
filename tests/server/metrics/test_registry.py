"""Every metric of the wire format is there, with the parameters of the wire format."""

import dataclasses
from enum import StrEnum

import pytest

from gradewire_proto.v1 import types_pb2
from gradewire_server.domain.metric import MetricInfo
from gradewire_server.metrics import registry
from gradewire_server.metrics.registry import COMPARISONS, REGISTRY, _by_name, _metrics_of

SPEC = types_pb2.MetricSpec.DESCRIPTOR
ALL = {**REGISTRY, **COMPARISONS}


class Named:
    """All that the registry looks at."""

    def __init__(self, name: str) -> None:
        self.info = MetricInfo(name=name, version=1, description="d", citation="c")


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
def test_the_defaults_that_people_read_are_those_that_are_used(name: str) -> None:
    parameters = ALL[name].parameters_type()
    for each in ALL[name].info.parameters:
        value = getattr(parameters, each.name)
        if isinstance(value, bool):
            assert each.default_value == str(value).lower(), each.name
        elif isinstance(value, int | float):
            assert float(each.default_value) == value, each.name
        elif isinstance(value, StrEnum):
            assert each.default_value == value, each.name
            assert each.allowed.split(", ") == [member for member in type(value) if member in each.allowed.split(", ")]


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


def test_a_class_is_found_where_it_is_defined_and_an_object_everywhere() -> None:
    smile, lave = REGISTRY["smile"], REGISTRY["lave"]
    names = {"Smile": type(smile), "LAVE": lave, "instance": smile, "other": 1}
    assert [type(each) for each in _metrics_of(names, type(smile).__module__)] == [type(smile), type(lave)]
    assert list(_metrics_of(names, "elsewhere")) == [lave]


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        ([Named("bleu"), Named("bleu")], "two metrics have the name bleu"),
        ([Named("bleu"), Named("of_tomorrow")], "types.proto lacks of_tomorrow"),
    ],
)
def test_a_name_that_is_taken_or_unknown_stops_the_start(
    monkeypatch: pytest.MonkeyPatch, metrics: list[object], message: str
) -> None:
    monkeypatch.setattr(registry, "_metrics_in_subpackages", lambda: iter(metrics))
    with pytest.raises(TypeError, match=message):
        _by_name()
