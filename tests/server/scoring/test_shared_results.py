"""Results that processes share: each comes back as it was, under a name that no other item or metric has."""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import example_count

from gradewire_proto.parts import PART_TYPES, SmileParts
from gradewire_server.domain.items import Item, MetricResult, ResultWarning
from gradewire_server.scoring.shared_results import decode_result, encode_result, recipe_digest, result_name

ITEM = Item("1", "what?", ("a kitten", "two cats"), "a small cat", ("It is a kitten.",), choices=("cat", "dog"))
RECIPE = recipe_digest("smile", 1)


def _values(hint: Any) -> st.SearchStrategy[Any]:
    if get_origin(hint) is Mapping:
        return st.dictionaries(st.text(), st.from_type(get_args(hint)[1]))
    return st.from_type(hint)


_PARTS = st.one_of(
    [
        st.builds(kind, **{name: _values(hint) for name, hint in get_type_hints(kind).items()})
        for kind in PART_TYPES.values()
    ]
)
_RESULTS = st.builds(
    MetricResult,
    st.floats(0, 1),
    message=st.text(),
    warnings=st.lists(st.sampled_from(ResultWarning)).map(tuple),
    matched_reference=st.none() | st.integers(0, 9),
    parts=st.none() | _PARTS,
    correct=st.none() | st.booleans(),
)


@settings(max_examples=example_count(300))
@given(result=_RESULTS, texts=st.integers(0, 1000))
def test_a_result_comes_back_as_it_was(result: MetricResult, texts: int) -> None:
    found = decode_result(encode_result(result, texts))
    assert repr(found.result) == repr(result)  # a part may be NaN, which equals nothing
    assert found.texts == texts


def test_numbers_of_numpy_come_back_as_numbers_of_python() -> None:
    parts = SmileParts(np.float32(0.5), np.float64(0.25), 0.5, 0.5, "cat", np.int64(4), np.bool_(1))
    found = decode_result(encode_result(MetricResult(np.float32(0.75), parts=parts), 3)).result  # type: ignore[arg-type]
    assert found == MetricResult(0.75, parts=SmileParts(0.5, 0.25, 0.5, 0.5, "cat", 4, correct=True))
    assert type(found.score) is float


@pytest.mark.parametrize(
    "changes",
    [
        {"question": "which?"},
        {"references": ("two cats", "a kitten")},
        {"references": ("a kitten", "two", "cats")},
        {"references": ("a kitten', 'two cats",)},
        {"prediction": "a small dog"},
        {"synthetic_answers": ()},
        {"captions": ("It is a kitten.",)},
        {"choices": ("cat",)},
        {"answerable": False},
    ],
)
def test_every_other_text_makes_another_name(changes: dict[str, Any]) -> None:
    assert result_name(RECIPE, "n", replace(ITEM, **changes)) != result_name(RECIPE, "n", ITEM)


def test_identifiers_make_no_other_name_but_tenants_and_metrics_do() -> None:
    name = result_name(RECIPE, "n", ITEM)
    assert result_name(RECIPE, "n", replace(ITEM, id="2", group="other")) == name
    assert result_name(RECIPE, "m", ITEM) != name
    assert result_name(recipe_digest("smile", 2), "n", ITEM) != name
    assert recipe_digest("smile", 1) == RECIPE


def test_each_text_of_an_item_is_in_its_name() -> None:
    unnamed = {"id", "group", "images"}  # items with images have no name
    named = {"question", "references", "prediction", "synthetic_answers", "captions", "choices", "answerable"}
    assert {field.name for field in fields(Item)} == named | unnamed
