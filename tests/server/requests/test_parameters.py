"""Parameters cross by field names; unknown numbers are named; the line has the documented grammar."""

import math
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_proto.choices import SmilePreset, SyntheticMode
from gradewire_proto.v1 import types_pb2
from gradewire_server.domain.metric import NO_MODEL, ParameterError
from gradewire_server.metrics.registry import COMPARISONS, REGISTRY
from gradewire_server.metrics.smile.formula import SmileParameters
from gradewire_server.requests.errors import InvalidRequestError
from gradewire_server.requests.parameters import read_parameters, write_line, write_spec

SMILE = REGISTRY["smile"]
ALL = {**REGISTRY, **COMPARISONS}
MESSAGES = st.builds(
    types_pb2.SmileParameters,
    preset=st.sampled_from(range(5)),
    synthetic=st.sampled_from(range(4)),
    sentence_weight=st.none() | st.floats(0, 1),
    model=st.just("m"),
)


def test_every_metric_of_the_wire_is_in_the_registry_and_the_reverse() -> None:
    on_wire = {field.name for field in types_pb2.MetricSpec.DESCRIPTOR.oneofs_by_name["metric"].fields}
    assert on_wire == set(ALL)


@pytest.mark.parametrize("name", ALL)
def test_defaults_can_be_read_and_written_for_every_metric(name: str) -> None:
    metric = ALL[name]
    message = getattr(types_pb2.MetricSpec(), name)
    model = "m" if metric.info.needs_model else ""
    parameters = read_parameters(message, metric, "metrics[0]", model=model)
    spec = write_spec(name, parameters)
    assert spec.WhichOneof("metric") == name
    assert read_parameters(getattr(spec, name), metric, "metrics[0]", model=model) == parameters


def test_what_is_unset_takes_the_default() -> None:
    parameters = read_parameters(types_pb2.SmileParameters(), SMILE, "p", model="m")
    assert parameters == SmileParameters(
        preset=SmilePreset.V1, synthetic=SyntheticMode.NONE, sentence_weight=None, model="m"
    )
    reference_code = types_pb2.SmileParameters(preset=types_pb2.SMILE_PRESET_REFERENCE_CODE)
    assert read_parameters(reference_code, SMILE, "p", model="m").weight == 0.5  # type: ignore[attr-defined]


def test_a_weight_of_zero_is_not_an_unset_one() -> None:
    message = types_pb2.SmileParameters(sentence_weight=0)
    assert read_parameters(message, SMILE, "p", model="m").sentence_weight == 0  # type: ignore[attr-defined]


@given(MESSAGES)
def test_what_is_written_reads_back_the_same(message: types_pb2.SmileParameters) -> None:
    parameters = read_parameters(message, SMILE, "p", model="m").resolved(NO_MODEL)
    spec = write_spec("smile", parameters)
    assert read_parameters(spec.smile, SMILE, "p", model="m") == parameters
    assert spec.smile.preset
    assert spec.smile.synthetic
    assert spec.smile.HasField("sentence_weight")


ENUMS = [
    (name, field.name)
    for name in ALL
    for field in types_pb2.MetricSpec.DESCRIPTOR.fields_by_name[name].message_type.fields
    if field.enum_type is not None
]


@pytest.mark.parametrize("number", [99, -1])
@pytest.mark.parametrize(("name", "field"), ENUMS)
def test_an_unknown_number_names_its_field(name: str, field: str, number: int) -> None:
    message = getattr(types_pb2.MetricSpec(), name)
    setattr(message, field, number)
    with pytest.raises(InvalidRequestError, match=f"unknown value {number}") as caught:
        read_parameters(message, ALL[name], f"metrics[1].{name}", model="m")
    assert caught.value.field == f"metrics[1].{name}.{field}"


@pytest.mark.parametrize("weight", [math.nan, math.inf, -0.1, 1.1])
def test_a_value_out_of_range_is_the_metrics_to_refuse(weight: float) -> None:
    with pytest.raises(ParameterError, match="sentence_weight"):
        read_parameters(types_pb2.SmileParameters(sentence_weight=weight), SMILE, "p", model="m")


def test_lines_by_hand() -> None:
    digest = "0a1b2c3d4e5f" + "0" * 52
    smile = SmileParameters(model="all-MiniLM-L6-v2").resolved(NO_MODEL)
    assert write_line(SMILE, smile, digest) == (
        "smile:v1/1?model=all-MiniLM-L6-v2@0a1b2c3d4e5f&sentence_weight=0.3&synthetic=none"
    )
    exact = REGISTRY["exact_match"]
    assert write_line(exact, exact.parameters_type(), "") == "exact_match/1?abstention=recognised&answer=whole"
    final = read_parameters(types_pb2.ExactMatchParameters(answer=types_pb2.GRADED_ANSWER_FINAL), exact, "p", model="")
    assert write_line(exact, final, "") == "exact_match/1?abstention=recognised&answer=final"
    bertscore = REGISTRY["bertscore"]
    message = types_pb2.BertscoreParameters(layer=5, idf=types_pb2.CORPUS_PREPARED, with_question=True, threshold=0.5)
    parameters = read_parameters(message, bertscore, "p", model="all-MiniLM-L6-v2")
    assert write_line(bertscore, parameters, digest, reference_set="a set") == (
        "bertscore/1?idf=prepared&layer=5&measure=f1&model=all-MiniLM-L6-v2@0a1b2c3d4e5f&reference_set=a%20set"
        "&rescale=false&threshold=0.5&with_question=true"
    )


@given(model=st.text(st.characters(exclude_categories=("Cs",)), min_size=1), weight=st.floats(0, 1))
def test_values_are_quoted_so_that_they_cannot_break_the_line(model: str, weight: float) -> None:
    line = write_line(SMILE, SmileParameters(sentence_weight=weight, model=model), "ab" * 32)
    head, _, query = line.partition("?")
    assert head == "smile:v1/1"
    pairs = [part.split("=") for part in query.split("&")]
    assert [key for key, _ in pairs] == ["model", "sentence_weight", "synthetic"]
    values = {key: unquote(value) for key, value in pairs}
    assert values["model"] == f"{model}@abababababab"
    assert float(values["sentence_weight"]) == weight
