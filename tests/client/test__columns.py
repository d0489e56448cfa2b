"""The choice of the columns of references and prediction, and its refusal if several would do."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire import Client, Pair, ReferenceEntry
from gradewire._columns import (
    ALIASES,
    CHOSEN_FIELDS,
    SHARED_NAMES,
    AmbiguousColumnsError,
    choose_columns,
    key_columns,
    spelled,
)
from gradewire.items import ItemProblem, encode_item
from gradewire.pairs import encode_pair
from gradewire.references import encode_entry
from gradewire.testing import StubTransport, echo_scores
from gradewire_proto.v1 import judging_pb2, references_pb2, types_pb2

USUAL = sorted({*ALIASES["references"], *ALIASES["prediction"]})


@pytest.mark.parametrize(
    ("columns", "references", "prediction"),
    [
        ("question answer contexts ground_truth", "ground_truth", "answer"),  # ragas
        ("user_input retrieved_contexts response reference", "reference", "response"),  # ragas, later
        ("question answer prediction", "answer", "prediction"),  # Hugging Face
        ("id question answers model_answer", "answers", "model_answer"),
        ("input actual_output expected_output", "expected_output", "actual_output"),  # DeepEval
        ("inputs outputs reference_outputs", "reference_outputs", "outputs"),  # LangSmith
        ("input output expectedOutput", "expectedOutput", "output"),  # Langfuse
        ("problem solution completion", "solution", "completion"),
        ("input ideal output", "ideal", "output"),  # OpenAI evals
        ("gold pred", "gold", "pred"),
        ("target response", "target", "response"),
        ("Question,Ground Truth,Model Answer", "Ground Truth", "Model Answer"),  # a spreadsheet
        ("references answer", "references", "answer"),
        ("references prediction answer response output", "references", "prediction"),
        ("answer Answer prediction", "answer", "prediction"),
    ],
)
def test_usual_layouts_are_read(columns: str, references: str, prediction: str) -> None:
    listed = columns.split("," if "," in columns else " ")
    assert choose_columns(listed, CHOSEN_FIELDS) == {"references": references, "prediction": prediction}


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ("answer golden_answer response", "answer could be the references or the prediction"),
        ("answers answer prediction", "answers could be the references, answer could be the references"),
        ("reference output response", "response could be the prediction, output could be the prediction"),
        ("target expected prediction", "target could be the references, expected could be the references"),
    ],
)
def test_several_columns_for_a_field_are_refused(columns: str, said: str) -> None:
    with pytest.raises(AmbiguousColumnsError) as error:
        choose_columns(columns.split(), CHOSEN_FIELDS)
    assert said in str(error.value)


def test_a_column_that_could_be_both_is_neither() -> None:
    assert choose_columns(["question", "answer"], CHOSEN_FIELDS) == {}
    assert choose_columns(["question", "answer"], ["references"]) == {"references": "answer"}
    assert choose_columns(["question", "answer"], ["prediction"]) == {"prediction": "answer"}


def test_a_field_that_is_not_read_may_be_unclear() -> None:
    columns = ["references", "response", "output"]
    with pytest.raises(AmbiguousColumnsError):
        choose_columns(columns, ["references"])
    assert choose_columns(columns, ["references"], read=["references"]) == {"references": "references"}
    assert choose_columns(columns, [], read=[]) == {"references": "references"}


def choices(columns: Sequence[str]) -> Sequence[Mapping[str, str]]:
    try:
        return [choose_columns(columns, CHOSEN_FIELDS)]
    except AmbiguousColumnsError as error:
        return error.choices


@given(st.lists(st.sampled_from([*USUAL, "question", "x"]), unique=True, max_size=6))
def test_a_choice_is_complete_and_does_not_depend_on_the_order(columns: list[str]) -> None:
    outcomes = [choices(order) for order in itertools.islice(itertools.permutations(columns), 6)]
    assert all(sorted(map(str, outcome)) == sorted(map(str, outcomes[0])) for outcome in outcomes)
    for choice in outcomes[0]:
        assert len(set(choice.values())) == len(choice), "one column must not have two fields"
        assert all(column in ALIASES[field] for field, column in choice.items())


@given(st.lists(st.sampled_from([*USUAL, "question"]), unique=True, min_size=1, max_size=5))
def test_a_refused_file_can_be_read_with_each_choice(columns: list[str]) -> None:
    for choice in filter(None, choices(columns)):
        assert choose_columns(columns, CHOSEN_FIELDS, given=choice, taken=set(choice.values())) == choice


def test_names_of_a_field_are_spelled_differently() -> None:
    for names in ALIASES.values():
        assert len({spelled(name) for name in names}) == len(names)
    assert SHARED_NAMES == ("answer",)


def of(mapping: dict[str, Any]) -> types_pb2.Item | ItemProblem:
    return encode_item(0, mapping, max_bytes=1000)


def test_mappings_are_read_by_the_same_rule() -> None:
    rag = {"question": "q", "answer": "Lyon", "contexts": ["c"], "ground_truth": "Paris"}
    assert of(rag) == types_pb2.Item(question="q", references=["Paris"], prediction="Lyon")
    assert of({"answer": "Paris", "prediction": "Lyon"}) == types_pb2.Item(references=["Paris"], prediction="Lyon")
    filled = {"references": None, "answers": ["Paris"], "prediction": "Lyon"}
    assert of(filled) == types_pb2.Item(references=["Paris"], prediction="Lyon")
    unclear = of({"id": 3, "answer": "Lyon", "golden_answer": "Paris", "response": "Lyon"})
    assert isinstance(unclear, ItemProblem)
    assert unclear.id == "3"
    assert "answer could be the references or the prediction" in unclear.message
    assert "rename the right keys to references and prediction" in unclear.message


def test_an_unclear_item_fails_alone() -> None:
    rows = [{"answer": "a", "gold": "b", "output": "c"}, {"gold": "b", "output": "c"}]
    with Client(transport=StubTransport(lambda request: echo_scores(request, score=lambda _: 0.5))) as client:
        statuses = [str(row.scores["smile"].status) for row in client.score(rows)]
    assert statuses == ["INVALID_INPUT", "OK"]


def test_entries_and_pairs_read_references_alone() -> None:
    entry = encode_entry(0, {"question": "q", "answer": "Paris"})
    assert entry == references_pb2.ReferenceEntry(question="q", references=["Paris"])
    assert entry == encode_entry(0, ReferenceEntry(question="q", references=["Paris"]))
    unclear = encode_entry(1, {"answer": "a", "gold": "b", "output": "c"})
    assert "entries[1]: " in getattr(unclear, "message", "")
    pair = {"question": "q", "answer_a": "x", "answer_b": "y", "answer": "Paris"}
    expected = encode_pair(0, Pair(question="q", answer_a="x", answer_b="y", references=["Paris"]), max_bytes=1000)
    assert isinstance(expected, judging_pb2.Pair)
    assert encode_pair(0, pair, max_bytes=1000) == expected


def test_keys_that_are_no_names_are_left_alone() -> None:
    assert key_columns(("references", "prediction", 7), CHOSEN_FIELDS) == {
        "references": ("references",),
        "prediction": ("prediction",),
    }
