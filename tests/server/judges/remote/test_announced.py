"""Replies of chat models in which the label is in bold, or announced."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import example_count

from gradewire_server.domain.result import Failure
from gradewire_server.judges.remote.announced import announced_label
from gradewire_server.judges.remote.labels import LabelReading, Labels, Step

VERDICT = ("incorrect", "correct")
GRADE = ("0", "1", "2", "3", "4", "5")
OPENING = "The student's answer is"


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("**Correct**", "correct"),
        ("__Incorrect__.", "incorrect"),
        ("`correct`", "correct"),
        ('"Correct"', "correct"),
        ("# Correct", "correct"),
        ("The verdict: incorrect.", "incorrect"),
        ("**Verdict:** Correct", "correct"),
        ("**Final verdict: incorrect**\n\nThe key names another city.", "incorrect"),
        ("My verdict is **correct**.", "correct"),
        ("The key says Paris. Verdict: incorrect", "incorrect"),
        ("The student's answer is **incorrect**.", "incorrect"),
        ("The student\N{RIGHT SINGLE QUOTATION MARK}s answer is correct.", "correct"),
        ("The answer is **correct**.", "correct"),
    ],
)
def test_one_label_in_bold_or_announced_is_read(text: str, label: str) -> None:
    reading = Labels(VERDICT, OPENING).read_text(text, whole=True)
    assert isinstance(reading, LabelReading)
    assert reading == LabelReading(tuple(float(each == label) for each in VERDICT), None)


@pytest.mark.parametrize(
    "text",
    [
        "**Correct** or **incorrect**?",
        "The verdict: correct. Or rather: incorrect.",
        "Verdict: not correct.",
        "The answer is not **correct**.",
        "I doubt that the verdict is correct.",
        "**Correct** would be Paris.",
        "**Correct:** Paris",
        "Verdict: correctly spelt.",
        "Verdict: partially-correct.",
        "Is the verdict: correct?",
        "Verdict: correct?",
        "Verdict:",
        "****",
    ],
)
def test_what_could_mean_something_else_is_no_label(text: str) -> None:
    assert announced_label(text, VERDICT, OPENING, whole=True) is None


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("**4**", "4"),
        ("Grade: **4**", "4"),
        ("Grade: 4.5", None),
        ("**4.5**", None),
        ("The grade: -1", None),
        ("The grade: 4/5", None),
        ("**4**: it names 2 of 3", None),
        ("The answer names 2.", None),
    ],
)
def test_a_digit_is_a_grade_only_where_it_stands_for_one(text: str, label: str | None) -> None:
    found = announced_label(text, GRADE, "Grade:", whole=True)
    assert (None if found is None else GRADE[found]) == label


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("**Correct**\n\nThe answer na", "correct"),
        ("The verdict: incorrect. The", "incorrect"),
        ("The verdict: correct", None),
        ("**Correct**", None),
        ("**Correct** or **inc", None),
        ("**Correct**.\nIt is not in", None),
    ],
)
def test_of_a_reply_that_was_cut_the_label_must_be_over_and_no_other_begun(text: str, label: str | None) -> None:
    found = announced_label(text, VERDICT, OPENING, whole=False)
    assert (None if found is None else VERDICT[found]) == label


def test_markup_that_is_a_part_of_a_label_is_none() -> None:
    assert announced_label("Grade: A*", ("A*", "B"), "", whole=True) == 0
    assert announced_label("Grade: **A**", ("A*", "B"), "", whole=True) is None


def test_a_bold_label_has_the_probabilities_of_its_own_tokens() -> None:
    def step(*tops: tuple[str, float]) -> Step:
        return Step(tops[0][0], tuple((text, math.log(p)) for text, p in tops))

    inner = (step((" **", 0.999)), step(("Cor", 0.75), ("In", 0.25)))
    for steps in (inner, (step(("Verdict", 0.9)), step((":", 1.0)), *inner)):
        reading = Labels(VERDICT, "Verdict:").read(steps)
        assert isinstance(reading, LabelReading)
        assert reading.probabilities == pytest.approx((0.25, 0.75))
        assert reading.mass == pytest.approx(1)
    assert isinstance(Labels(VERDICT).read((step(("**", 1.0)), step(("Paris", 1.0)))), Failure)


TEXTS = st.lists(
    st.sampled_from(["correct", "incorrect", "**", "Verdict", ":", " ", "\n", ".", "not", "is", "The", "\x00", "ß"])
).map("".join) | st.text(max_size=40)


@settings(max_examples=example_count(50))
@given(TEXTS, st.booleans())
def test_any_text_is_one_label_that_stands_in_it_or_none(text: str, whole: bool) -> None:  # noqa: FBT001 - drawn
    found = announced_label(text, VERDICT, OPENING, whole=whole)
    if found is not None:
        without = text.casefold().replace("incorrect", "") if found else text.casefold()
        assert VERDICT[found] in without


@pytest.mark.parametrize("filler", [" ", "\n", "*", "the ", "verdict ", "correct", "1.", "a"])
def test_a_megabyte_is_read_at_once(filler: str) -> None:
    text = filler * ((1 << 20) // len(filler))
    assert announced_label(text, GRADE, "Grade:", whole=True) is None
