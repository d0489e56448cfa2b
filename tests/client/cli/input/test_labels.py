import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire.cli.input.labels import HumanLabel, read_labels


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
