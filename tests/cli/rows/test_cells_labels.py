import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.conftest import Command, answer, write_rows

from gradewire.testing import StubTransport
from gradewire_cli.problems import InputError
from gradewire_cli.rows.cells import HumanLabel, read_label_map, read_labels


@pytest.mark.parametrize(
    ("own", "listed", "expected"),
    [
        (1, None, HumanLabel(1.0)),
        (0.25, None, HumanLabel(0.25)),
        (7, None, HumanLabel(7.0)),
        (" Yes ", None, HumanLabel(1.0)),
        ("no", None, HumanLabel(0.0)),
        (False, None, HumanLabel(0.0)),
        ([1, 0, 1, 1], None, HumanLabel(0.75, (1.0, 0.0, 1.0, 1.0))),
        (None, [1, 0], HumanLabel(0.5, (1.0, 0.0))),
        ("", "[1, null, 0]", HumanLabel(0.5, (1.0, None, 0.0))),
        # The row's own label stands beside its annotators', whatever these say.
        (1, [0, 0, 1], HumanLabel(1.0, (0.0, 0.0, 1.0))),
        ([0, 0], [1, 1, 0], HumanLabel(2 / 3, (1.0, 1.0, 0.0))),
        (None, [None, math.nan, ""], HumanLabel()),
        (None, 1, HumanLabel(1.0, (1.0,))),
        ([], [], HumanLabel()),
        (None, None, HumanLabel()),
    ],
)
def test_labels_that_can_be_read(own: object, listed: object, expected: HumanLabel) -> None:
    assert read_labels(own, listed) == expected


@pytest.mark.parametrize(
    ("own", "listed"),
    [
        (math.inf, None),
        (-math.inf, None),
        (None, [1, math.inf]),
        ("inf", None),
        ("maybe", None),
        (1, [0, "x"]),
        ([[1]], None),
        ({}, None),
        (10**400, None),
        ("[1,", None),
        ("[" * 9999, None),
    ],
)
def test_a_label_that_cannot_be_read_is_named_and_gives_no_value(own: object, listed: object) -> None:
    found = read_labels(own, listed)
    assert (found.value, found.annotations) == (None, ())
    assert found.unreadable
    assert len(found.unreadable) < 200


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists), st.text() | st.lists(st.floats()))
def test_any_cell_is_read_or_named(own: object, listed: object) -> None:
    found = read_labels(own, listed)
    assert found.value is None or math.isfinite(found.value)
    assert found.value is None or not found.unreadable


@pytest.mark.parametrize(
    ("cell", "value"),
    [("correct", 1.0), ("Incorrect", 0.0), ("RIGHT", 1.0), ("wrong", 0.0), ("['yes', 'no']", 0.5), (True, 1.0)],
)
def test_words_that_everybody_knows(cell: object, value: float) -> None:
    assert read_labels(cell, None).value == value


def test_a_map_says_what_words_and_grades_mean() -> None:
    words = read_label_map("Partly correct=0.5,good=1,4=0.75,a=b=0")
    assert words == {"partly correct": 0.5, "good": 1.0, "4": 0.75, "a=b": 0.0}
    assert read_labels("partly Correct ", None, words).value == 0.5
    for cell in (4, "4", 4.0, "4.0"):
        assert read_labels(cell, None, words).value == 0.75
    assert read_labels(None, ["good", 4], words).value == 0.875
    assert read_labels("correct", None, words).value == 1.0
    assert read_labels("so so", None, words).unreadable == "'so so'"


@pytest.mark.parametrize("text", ["good", "good=", "=1", "good=nan", "good=one"])
def test_a_map_that_is_none_says_how_to_write_it(text: str) -> None:
    with pytest.raises(InputError, match="WORD=NUMBER"):
        read_label_map(text)


def test_labels_that_nobody_can_read_are_told_before_anything_is_scored(command: Command, tmp_path: Path) -> None:
    file = write_rows(tmp_path / "a.jsonl", [{"references": ["a"], "prediction": "b", "label": "so so"}] * 3)
    asked: list[object] = []
    stub = StubTransport(lambda request: asked.append(request) or answer(request))
    done = command("agree", file, "--resamples", "100", stub=stub)
    assert done.exit_code == 2
    assert "the first labels are all unreadable (line 1: 'so so')" in done.stderr
    assert "--label-map" in done.stderr
    assert not asked


@pytest.mark.parametrize(("own", "value"), [("4", 1.0), (4.0, 1.0), ("partly", 0.5), ("yes", 1.0)])
def test_a_map_of_grades_holds_for_all_grades(own: object, value: float) -> None:
    words = read_label_map("1=0,2=0,3=0.5,4=1,partly=0.5")
    assert read_labels(own, None, words).value == value
    for left_out in ("5", 5, 5.0, 0, "0.5", [1, 5]):
        assert read_labels(left_out, None, words).unreadable
    assert read_labels(5, None, read_label_map("partly=0.5")).value == 5
