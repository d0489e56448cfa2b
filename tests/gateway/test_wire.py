"""JSON to messages and back: what can be written is read the same; what cannot be read names the field."""

import json
import math
from typing import Any

import pytest
from google.protobuf import json_format
from hypothesis import given
from hypothesis import strategies as st

from gradewire_gateway.problems import ProblemError
from gradewire_gateway.wire import find_fault, read_message, read_object, write_message
from gradewire_proto.v1 import scoring_pb2, types_pb2

Request = scoring_pb2.ScoreRequest
DESCRIPTOR: Any = Request.DESCRIPTOR
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
items = st.builds(
    types_pb2.Item,
    id=texts,
    question=texts,
    references=st.lists(texts, max_size=3),
    images=st.lists(st.builds(types_pb2.Image, data=st.binary(max_size=20)), max_size=2),
)
metrics = st.one_of(
    st.builds(lambda w: types_pb2.MetricSpec(smile=types_pb2.SmileParameters(sentence_weight=w)), st.floats()),
    st.just(types_pb2.MetricSpec(exact_match=types_pb2.ExactMatchParameters())),
)
requests = st.builds(Request, items=st.lists(items, max_size=3), metrics=st.lists(metrics, max_size=2))
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text() | st.sampled_from(["items", "id"]), inner),
    max_leaves=10,
)


@given(requests)
def test_what_is_written_is_read_the_same(request: Request) -> None:
    written = write_message(request)
    assert b"\n" not in written
    assert read_message(written, Request).SerializeToString() == request.SerializeToString()


@given(st.floats() | st.floats(width=32))
def test_numbers_keep_every_bit(number: float) -> None:
    result = types_pb2.MetricResult(score=number)
    again = read_message(write_message(result), types_pb2.MetricResult).score
    assert again == number or (math.isnan(again) and math.isnan(number))
    assert math.copysign(1, again) == math.copysign(1, number) or math.isnan(number)


@given(st.binary(max_size=200))
def test_bytes_are_read_or_refused(data: bytes) -> None:
    assert read_or_refused(data) in {"read", "invalid_argument"}


def read_or_refused(data: bytes) -> str:
    """Whether bytes can be read, else the code of the problem; any other error is one of the reader's."""
    try:
        read_message(data, Request)
    except ProblemError as error:
        return error.problem.code
    return "read"


@given(st.dictionaries(st.sampled_from(["items", "metrics", "priority", "omitDiagnostics", "x"]), values))
def test_values_of_other_types_are_read_or_refused(value: dict[str, Any]) -> None:
    assert read_or_refused(json.dumps(value).encode()) in {"read", "invalid_argument"}


@pytest.mark.parametrize(
    ("value", "at", "what"),
    [
        ({"items": [{}, {"id": 7}]}, "items[1].id", "string"),
        ({"items": {}}, "items", "list"),
        ({"items": [None]}, "items[0]", "object"),
        ({"items": [{"references": ["a", None]}]}, "items[0].references[1]", "string"),
        ({"items": [{"synthetic_answers": [], "syntheticAnswers": []}]}, "items[0].syntheticAnswers", "twice"),
        ({"metrics": [{"smile": []}]}, "metrics[0].smile", "object"),
        ({"metrics": [{"smile": {}, "sbert": {}}]}, "metrics[0]", "only one"),
        ({"metrics": [{"smile": {"preset": "v1"}}]}, "metrics[0].smile.preset", "SMILE_PRESET_V1"),
        ({"metrics": [{"smile": {"sentenceWeight": "x"}}]}, "metrics[0].smile.sentenceWeight", "number"),
        ({"metrics": [{"bertscore": {"layer": -1}}]}, "metrics[0].bertscore.layer", "from 0"),
        ({"metrics": [{"smile": {"threshold": [1]}}]}, "metrics[0].smile.threshold", "a number, not a list"),
        ({"omitDiagnostics": 1}, "omitDiagnostics", "true or false"),
        ({"item": 1}, "item", "ScoreRequest are items, metrics"),
    ],
)
def test_the_fault_is_found_where_it_is(value: Any, at: str, what: str) -> None:
    fault = find_fault(value, DESCRIPTOR)
    assert fault is not None
    assert fault.at == at
    assert what in fault.what


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("72", "must be a string, not a number"),
        ("7.5", "must be a string, not a number"),
        ("NaN", "must be a string, not a number"),
        ("false", "must be a string, not true or false"),
        ('["a"]', "must be a string, not a list"),
        ("{}", "must be a string, not an object"),
        (r'"a \ud800"', "must be a string without lone surrogates"),
    ],
)
def test_a_text_of_another_type_is_refused_with_the_type(written: str, says: str) -> None:
    with pytest.raises(ProblemError) as caught:
        read_message(f'{{"items": [{{"prediction": {written}}}]}}'.encode(), Request)
    assert caught.value.problem.detail == f"items[0].prediction: {says}"


@pytest.mark.parametrize("written", ["NaN", "Infinity", "-Infinity", "1e999", "1" + 400 * "0"])
def test_a_parameter_that_is_no_finite_number_is_refused_without_a_word_that_would_be_refused_too(written: str) -> None:
    with pytest.raises(ProblemError) as caught:
        read_message(f'{{"metrics": [{{"smile": {{"threshold": {written}}}}}]}}'.encode(), Request)
    assert caught.value.problem.detail == "metrics[0].smile.threshold: must be a finite number"


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ({"items": [{}], "referenceSet": "a", "reference_set": "b"}, ("reference_set", "referenceSet")),
        ({"reference_set": "a", "items": [], "referenceSet": "a"}, ("referenceSet", "reference_set")),
        ({"omit_diagnostics": True, "omitDiagnostics": None}, ("omitDiagnostics", "omit_diagnostics")),
        (
            {"items": [{}, {"syntheticAnswers": [], "synthetic_answers": []}]},
            ("items[1].synthetic_answers", "syntheticAnswers"),
        ),
        (
            {"metrics": [{"smile": {"sentenceWeight": 1, "sentence_weight": 1}}]},
            ("metrics[0].smile.sentence_weight", "sentenceWeight"),
        ),
    ],
)
def test_a_field_under_both_of_its_names_is_refused_with_both(value: Any, named: tuple[str, str]) -> None:
    with pytest.raises(ProblemError) as caught:
        read_message(json.dumps(value).encode(), Request)
    problem = caught.value.problem
    assert (problem.status, problem.at) == (400, named[0])
    assert problem.detail == f"{named[0]}: is set twice, also under the name {named[1]}"


@pytest.mark.parametrize("name", ["a", "é" * 999])
def test_a_name_twice_in_an_object_is_refused_by_name(name: str) -> None:
    with pytest.raises(ProblemError, match=f"the name '{name[:80]}' occurs twice"):
        read_object(json.dumps({"x": {"b": 1, name: 2}}, ensure_ascii=False).replace('"b"', f'"{name}"').encode())


MANY = 1 << 18


@pytest.mark.parametrize(
    ("body", "is_read"),
    [
        ('{"x":[' + "0," * (MANY - 3) + "0]}", True),
        ('{"x":[' + "0," * MANY + "0]}", False),
        ('{"x":[' + "[]," * (MANY // 2) + "0]}", False),
        ('{"x":"' + ",[{" * MANY + '"}', True),
        ('{"x":"' + r"\"," * MANY + '"}', True),
        ('{"x":"' + r"\\" * MANY + '","y":[' + "0," * MANY + "0]}", False),
        ('{"x":"' + ",[{" * MANY, None),
    ],
)
def test_a_body_of_too_many_values_is_refused_before_it_is_read(body: str, is_read: bool | None) -> None:  # noqa: FBT001 - a column
    """None: it is no JSON."""
    if is_read:
        assert read_object(body.encode())
        return
    with pytest.raises(ProblemError) as caught:
        read_object(body.encode())
    assert caught.value.problem.status == (400 if is_read is None else 413)


@pytest.mark.parametrize("at", range(-4, 5))
@pytest.mark.parametrize("text", [r"\\", r"\"", r"\\\"", "x"])
def test_a_string_counts_as_one_value_wherever_it_is_cut(text: str, at: int) -> None:
    begin = '{"x":"' + "x" * ((1 << 20) - 6 + at)
    assert read_object(f'{begin}{text}{"," * MANY}"}}'.encode())
    with pytest.raises(ProblemError) as caught:
        read_object(f'{begin}{text}","y":[{"0," * MANY}0]}}'.encode())
    assert caught.value.problem.status == 413


@pytest.mark.parametrize("number", ["9" * 1000, "-" + "9" * 999, "0." + "1" * 998, "1e" + "0" * 998])
def test_a_number_of_a_thousand_digits_is_read_and_a_longer_one_is_not(number: str) -> None:
    assert read_object(f'{{"x": {number}}}'.encode()) == {"x": json.loads(number)}
    with pytest.raises(ProblemError, match="a number has more than 1000 digits"):
        read_object(f'{{"x": {number}0}}'.encode())


def test_a_reply_is_written_as_protobuf_writes_it() -> None:
    item = types_pb2.Item(id='ä"\n', references=["😀", ""], prediction="x" * 99)
    for message in (Request(), Request(items=[item, types_pb2.Item()], omit_diagnostics=True)):
        assert write_message(message).decode() == json_format.MessageToJson(message, indent=None, ensure_ascii=False)


def test_what_is_null_counts_as_left_out() -> None:
    assert read_message(b'{"items": null, "priority": null}', Request) == Request()
