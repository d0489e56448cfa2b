import datetime as dt
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire import Item
from gradewire.items import ItemProblem, encode_item
from gradewire_proto.v1 import types_pb2

GOOD = {
    "references": ["a", "b"],
    "prediction": "c",
    "id": "x",
    "question": "q",
    "caption": "k",
    "group": "g",
    "captions": ["l"],
}


def problem(item: object, max_bytes: int = 10_000) -> ItemProblem:
    encoded = encode_item(7, item, max_bytes=max_bytes)
    assert isinstance(encoded, ItemProblem)
    return encoded


def test_mapping_and_item_give_the_same_message() -> None:
    from_mapping = encode_item(0, {**GOOD, "model": "not looked at"}, max_bytes=1000)
    assert from_mapping == types_pb2.Item(**GOOD)
    assert from_mapping == encode_item(0, Item(**GOOD), max_bytes=1000)


def test_optional_fields_may_be_none_and_ids_numbers() -> None:
    encoded = encode_item(0, {"id": 17, "references": ("a",), "prediction": "", "question": None}, max_bytes=1000)
    assert encoded == types_pb2.Item(id="17", references=["a"])


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"references": {"a"}}, "items[7].references[0] is a set: give a string"),
        ({"references": ["a", True]}, "items[7].references[1] is True, a truth value: write it as the other answers"),
        ({"references": ["a", None]}, "items[7].references[1] is missing (None or NaN): leave it out"),
        ({"references": [["a"], "b"]}, "items[7].references[0] is a list in a list"),
        ({"references": {"value": "a"}}, "items[7].references is an object with the keys value: give a list"),
        ({"prediction": dt.date(2024, 5, 3)}, "items[7].prediction is a date (2024-05-03): dates have many forms"),
        ({"prediction": math.inf}, "items[7].prediction is inf: give a text or a finite number"),
        ({"prediction": math.nan}, 'items[7].prediction is nan: write ""'),
        ({"references": ["a", "\ud800"]}, "items[7].references[1] holds a lone surrogate (U+D800 at character 0)"),
        ({"prediction": "ab\udfff"}, "items[7].prediction holds a lone surrogate (U+DFFF at character 2)"),
        ({"prediction": None}, 'items[7].prediction is None: write ""'),
        ({"prediction": b"\xff"}, "items[7].prediction is bytes: give a string"),
        ({"prediction": b"plain"}, "items[7].prediction is bytes: give a string"),
        ({"references": ["a", b"b"]}, "items[7].references[1] is bytes: give a string"),
        ({"synthetic_answers": (b"b",)}, "items[7].synthetic_answers[0] is bytes: give a string"),
        ({"question": b"q"}, "items[7].question is bytes: give a string"),
        ({"id": b"i"}, "items[7].id is bytes: give a string"),
        ({"question": object()}, "items[7].question is a object"),
        ({"id": "\ud800"}, "items[7].id holds a lone surrogate"),
        ({"synthetic_answers": {"a": 1}}, "items[7].synthetic_answers is an object with the keys a"),
    ],
)
def test_problems_name_item_and_field(change: dict[str, object], part: str) -> None:
    for item in ({**GOOD, **change}, Item(**{**GOOD, **change})):
        found = problem(item)
        assert part in found.message
        assert not found.too_large
        found.id.encode()


def test_a_missing_field_lists_what_is_there() -> None:
    assert problem({"refs": ["a"], "prediction": ""}).message == (
        "items[7].references is missing (there is: prediction, refs): give a list of strings"
    )
    assert "is a list" in problem(["a"]).message


def test_too_large_is_told_apart() -> None:
    found = problem({**GOOD, "prediction": "x" * 200}, max_bytes=100)
    assert found.too_large
    assert "at most 100 fit" in found.message
    assert found.id == "x"


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()) | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(
    st.dictionaries(st.sampled_from([*GOOD, "synthetic_answers", "other"]), anything)
    | st.dictionaries(anything.filter(lambda key: isinstance(key, str | int)), anything, max_size=3)
    | anything
)
def test_nothing_that_is_given_raises(item: object) -> None:
    encoded = encode_item(0, item, max_bytes=1000)
    if isinstance(encoded, types_pb2.Item):
        assert types_pb2.Item.FromString(encoded.SerializeToString()) == encoded
    else:
        assert encoded.message.startswith("items[0]")


@pytest.mark.parametrize(
    ("references", "texts"),
    [
        ("a", ["a"]),
        (1989, ["1989"]),
        ([2.0, 2.5, np.int64(7), np.float32(0.5), np.str_("x")], ["2", "2.5", "7", "0.5", "x"]),
        (np.array(["a", "b"], dtype=object), ["a", "b"]),
        (np.array([1, 2]), ["1", "2"]),
        ("['a', 'b']", ["a", "b"]),
        (["['a', 'b']"], ["['a', 'b']"]),
        ("[0, 1]", ["[0, 1]"]),
        ([{"answer": "a", "answer_confidence": "yes"}, {"answer": "b"}], ["a", "b"]),
        ({"text": ["a", "b"], "answer_start": [0, 1]}, ["a", "b"]),
        ((), []),
    ],
)
def test_references_as_table_libraries_have_them(references: object, texts: list[str]) -> None:
    encoded = encode_item(0, {"references": references, "prediction": np.int64(2)}, max_bytes=1000)
    assert encoded == types_pb2.Item(references=texts, prediction="2")


@pytest.mark.parametrize("references", ["reference", "answers", "answer", "golden_answer"])
@pytest.mark.parametrize("prediction", ["pred", "response", "candidate"])
def test_other_usual_names(references: str, prediction: str) -> None:
    item = {references: "a", prediction: "b", "syn_ans": ["c"], "dataset": "d"}
    expected = types_pb2.Item(references=["a"], prediction="b", synthetic_answers=["c"], group="d")
    assert encode_item(0, item, max_bytes=1000) == expected
    named = {**item, "references": ["r"], "prediction": "p", "group": "g"}
    expected = types_pb2.Item(references=["r"], prediction="p", synthetic_answers=["c"], group="g")
    assert encode_item(0, named, max_bytes=1000) == expected
