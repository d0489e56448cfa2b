"""Rows on disk are sent as the rows themselves would be."""

import json
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from gradewire import Item
from gradewire._calls.submit import READ_NAMES
from gradewire.integrations import StepMetric, StepScores, StepState
from gradewire.integrations.training.steps import decode_row, encode_row
from gradewire.items import ItemProblem, encode_item

_TEXTS = st.text() | st.just("\ud800")
_VALUES = st.recursive(
    _TEXTS | st.integers() | st.floats() | st.none() | st.booleans() | st.binary() | st.decimals() | st.fractions(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3),
    max_leaves=6,
)
_NAMES = st.sampled_from(["references", "Reference", "prediction", "response", "question", "id", "captions", "other"])
_ROWS = st.dictionaries(_NAMES, _VALUES, max_size=6) | _VALUES


def sent(row: Any) -> object:
    """What the client would send; of a problem only that there is one, for its words may quote the value."""
    encoded = encode_item(0, row, max_bytes=10**6)
    return ItemProblem if isinstance(encoded, ItemProblem) else encoded


@given(_ROWS)
def test_any_row_is_sent_from_disk_as_it_would_be_sent_at_once(row: Any) -> None:
    line = encode_row(row, READ_NAMES)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert sent(decode_row(line)) == sent(row)


@given(st.lists(st.text(), max_size=4), st.text(), st.text(), st.text())
def test_items_come_back(references: list[str], prediction: str, question: str, caption: str) -> None:
    item = Item(references=references, prediction=prediction, question=question, captions=[caption], id="7")
    assert sent(decode_row(encode_row(item, READ_NAMES))) == sent(item)


@pytest.mark.parametrize("value", [Decimal("1.50"), Fraction(1, 3)])
def test_exact_numbers_keep_their_text(value: object) -> None:
    row = {"references": [value], "prediction": value}
    assert sent(decode_row(encode_row(row, READ_NAMES))) == sent(row)
    assert sent(row) is not ItemProblem


def test_pictures_are_kept_where_they_are_shown() -> None:
    row = {"references": ["a"], "prediction": "b", "images": [Image.new("L", (2, 2)), {"bytes": b"\x00"}]}
    kept = encode_item(0, decode_row(encode_row(row, READ_NAMES | {"images"})), max_bytes=10**6, images=True)
    assert kept == encode_item(0, row, max_bytes=10**6, images=True)
    assert json.loads(encode_row(row, READ_NAMES))["images"] is None


def test_a_row_that_nothing_can_write_becomes_one_without_a_score() -> None:
    circular: dict[str, Any] = {"references": ["a"], "prediction": "b"}
    circular["question"] = [circular]
    for row in (circular, object(), {"references": object(), "prediction": "b"}):
        assert sent(decode_row(encode_row(row, READ_NAMES))) is ItemProblem


def test_scalars_have_the_bounds_that_are_known() -> None:
    known = StepMetric(
        0.5, 0.4, 5, 0.0, {"OK": 5}, mean_low=0.3, mean_high=0.7, share_right_low=0.1, share_right_high=0.8
    )
    few = StepMetric(0.5, None, 2, 0.0, {"OK": 2})
    scores = StepScores(1, "held out", 5, StepState.SCORED, {"smile": known, "rouge_l": few})
    assert scores.scalars() == {
        "held out/smile/mean": 0.5,
        "held out/smile/mean_low": 0.3,
        "held out/smile/mean_high": 0.7,
        "held out/smile/share_right": 0.4,
        "held out/smile/share_right_low": 0.1,
        "held out/smile/share_right_high": 0.8,
        "held out/smile/uncertain": 0,
        "held out/smile/not_scored": 0.0,
        "held out/rouge_l/mean": 0.5,
        "held out/rouge_l/not_scored": 0.0,
    }


def test_scores_of_an_older_version_are_read_without_bounds() -> None:
    scores = StepScores(1, "a", 2, StepState.SCORED, {"smile": StepMetric(0.5, None, 2, 0.0, {"OK": 2})})
    stored = scores.to_dict()
    assert "mean_low" not in stored["metrics"]["smile"]
    assert StepScores.from_dict(json.loads(json.dumps(stored))) == scores
