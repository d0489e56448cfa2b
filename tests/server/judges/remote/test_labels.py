"""Replies of chat models in which the label is in bold, or announced."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import example_count

from gradewire_server.domain.items import Failure, Status
from gradewire_server.domain.stated_labels import stated_label
from gradewire_server.judges.remote.labels import LEAST_MASS, LabelReading, Labels, Step

VERDICT = ("incorrect", "correct")
GRADE = ("0", "1", "2", "3", "4", "5")
OPENING = "The student's answer is"


def announced(text: str, options: tuple[str, ...], opening: str, *, whole: bool) -> int | None:
    found = stated_label(text, options, opening, whole=whole)
    if isinstance(found, Failure):
        assert found.status is Status.UNPARSABLE
        assert found.message.startswith("the judge's server answered with ")
        return None
    return found


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
        "The verdict: correct. Incorrect.",
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
    assert announced(text, VERDICT, OPENING, whole=True) is None


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("**4**", "4"),
        ("Grade: **4**", "4"),
        ("Grade: 4.5", None),
        ("**4.5**", None),
        ("The grade: -1", None),
        ("The grade: 4/5", "4"),
        ("The grade: 4/6", None),
        ("**4**: it names 2 of 3", None),
        ("The answer names 2.", None),
    ],
)
def test_a_digit_is_a_grade_only_where_it_stands_for_one(text: str, label: str | None) -> None:
    found = announced(text, GRADE, "Grade:", whole=True)
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
    found = announced(text, VERDICT, OPENING, whole=False)
    assert (None if found is None else VERDICT[found]) == label


def test_markup_that_is_a_part_of_a_label_is_none() -> None:
    assert announced("Grade: A*", ("A*", "B"), "", whole=True) == 0
    assert announced("Grade: **A**", ("A*", "B"), "", whole=True) is None


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
    found = announced(text, VERDICT, OPENING, whole=whole)
    if found is not None:
        without = text.casefold().replace("incorrect", "") if found else text.casefold()
        assert VERDICT[found] in without


@pytest.mark.parametrize("filler", [" ", "\n", "*", "the ", "verdict ", "correct", "1.", "a"])
def test_a_megabyte_is_read_at_once(filler: str) -> None:
    text = filler * ((1 << 20) // len(filler))
    assert announced(text, GRADE, "Grade:", whole=True) is None


RATING = ("1", "2", "3")


def tokens(*tops: dict[str, float]) -> list[Step]:
    """Steps from probabilities by text, the token that was written first."""
    return [Step(next(iter(top)), tuple((text, math.log(p)) for text, p in top.items())) for top in tops]


def read(options: tuple[str, ...], *tops: dict[str, float], opening: str = "") -> LabelReading | Failure:
    return Labels(options, opening).read(tokens(*tops))


def test_a_label_with_its_blank_is_one_token() -> None:
    reading = read(RATING, {" 1": 0.6, " 2": 0.1, "\n": 0.2, " 3": 0.1})
    assert isinstance(reading, LabelReading)
    assert reading.probabilities == pytest.approx((0.6 / 0.8, 0.1 / 0.8, 0.1 / 0.8))
    assert reading.mass == pytest.approx(0.8)


def test_a_blank_of_its_own_is_followed_to_where_the_labels_part() -> None:
    reading = read(RATING, {" ": 0.4, " A": 0.6}, {"2": 0.5, "1": 0.25, "9": 0.25})
    assert isinstance(reading, LabelReading)
    assert reading.probabilities == pytest.approx((1 / 3, 2 / 3, 0))
    assert reading.mass == pytest.approx(0.75)  # among what may follow the blank, which is no part of any label


def test_a_judge_that_was_made_to_write_a_blank_is_read_where_it_would_have_written_a_label() -> None:
    reading = read(("yes", "no"), {" ": 0.5, " yes": 0.06, " no": 0.04, " I": 0.4}, {"I": 0.999, "yes": 0.001})
    assert isinstance(reading, LabelReading)
    assert reading.probabilities == pytest.approx((0.6, 0.4))
    assert reading.mass == pytest.approx(0.1)


def test_labels_are_known_by_their_first_differing_tokens() -> None:
    reading = read(("incorrect", "correct"), {" in": 0.3, " cor": 0.2, " i": 0.1, " the": 0.4}, {"correct": 1.0})
    assert isinstance(reading, LabelReading)
    assert reading.probabilities == pytest.approx((0.4 / 0.6, 0.2 / 0.6))


def test_case_and_white_space_do_not_matter() -> None:
    reading = read(("yes", "no"), {"Yes": 0.5, " yes": 0.2, "YES": 0.1, "No": 0.2})
    assert isinstance(reading, LabelReading)
    assert reading.probabilities == pytest.approx((0.8, 0.2))


def test_a_longer_number_is_another_one() -> None:
    reading = read(RATING, {"10": 0.6, "1": 0.1, "1.": 0.1, "2": 0.2})
    assert isinstance(reading, LabelReading)
    assert reading.probabilities == pytest.approx((0.5, 0.5, 0))
    assert reading.mass == pytest.approx(0.4)


@pytest.mark.parametrize(
    "tops", [({"The": 0.9, "A": 0.1},), ({" ": 1.0},), (), ({"": 0.9, "?": 0.1},), ({"R": 0.99, "1": 9e-4},)]
)
def test_none_of_the_labels_is_unparsable(tops: tuple[dict[str, float], ...]) -> None:
    failure = read(RATING, *tops)
    assert isinstance(failure, Failure)
    assert failure.status is Status.UNPARSABLE


def test_a_label_that_the_judge_was_made_to_write_and_did_not_want_to_is_none() -> None:
    failure = Labels(RATING).read([Step("1", (("Paris", -0.1), ("The", -3.0)))])
    assert isinstance(failure, Failure)
    assert failure.status is Status.UNPARSABLE


@pytest.mark.parametrize("logprobs", [(math.nan, -1.0), (0.5, -1.0), (-0.1, -0.1), (math.inf, -1.0)])
def test_what_is_no_probability_is_unparsable(logprobs: tuple[float, float]) -> None:
    failure = Labels(RATING).read([Step("1", (("1", logprobs[0]), ("2", logprobs[1])))])
    assert isinstance(failure, Failure)
    assert failure.status is Status.UNPARSABLE


def test_minus_infinity_is_nothing() -> None:
    reading = Labels(RATING).read([Step("1", (("1", -0.1), ("2", -math.inf), ("3", -9999.0)))])
    assert isinstance(reading, LabelReading)
    assert reading.probabilities == (1.0, 0.0, 0.0)


def test_an_opening_that_is_repeated_is_followed() -> None:
    tops = ({"Rating": 0.7, "2": 0.3}, {":": 1.0}, {" ": 1.0}, {"3": 0.5, "1": 0.5})
    reading = read(RATING, *tops, opening="Rating:")
    assert isinstance(reading, LabelReading)
    assert reading.probabilities == pytest.approx((0.5, 0, 0.5))
    assert isinstance(read(RATING, *tops), LabelReading)  # without it "2" is all that there is of a label
    assert read(RATING, *tops).probabilities == (0, 1, 0)  # type: ignore[union-attr] - looked at in the line above


def test_labels_that_begin_alike_in_these_tokens_are_refused() -> None:
    failure = read(("0.1", "0.2", "1"), {"0": 0.8, "1": 0.2}, {".": 1.0}, {"1": 0.5, "2": 0.5})
    assert isinstance(failure, Failure)
    assert failure.status is Status.INVALID_PARAMETER
    alike = read(("0.1", "0.2"), {"0": 0.8, "1": 0.2}, {".": 1.0}, {"1": 0.5, "2": 0.5})
    assert isinstance(alike, LabelReading)
    assert alike.probabilities == pytest.approx((0.5, 0.5))


@pytest.mark.parametrize(
    ("options", "distinct"),
    [(("1", "2"), True), (("yes", "Yes"), False), (("no", "not"), False), (("a", " "), False), (("1", "10"), False)],
)
def test_labels_must_be_told_apart(options: tuple[str, ...], *, distinct: bool) -> None:
    assert Labels(options).distinct is distinct


@pytest.mark.parametrize(
    ("text", "whole", "label"),
    [
        ("2", True, 1),
        (" 2.", True, 1),
        ("Rating: 2", True, 1),
        ("rating:2 because", True, 1),
        ("2", False, 1),
        ("20", True, None),
        ("", True, None),
        ("", False, None),
        ("Rating:", False, None),
        ("4", True, None),
        ("I think 2", True, None),
        ("1 or 2", True, None),
    ],
)
def test_text_alone_decides_where_there_is_nothing_else(text: str, label: int | None, *, whole: bool) -> None:
    reading = Labels(RATING, "Rating:").read_text(text, whole=whole)
    if label is None:
        assert isinstance(reading, Failure)
        assert reading.status is Status.UNPARSABLE
    else:
        assert isinstance(reading, LabelReading)
        assert reading.probabilities == tuple(float(index == label) for index in range(3))
        assert reading.mass is None


def test_a_label_that_was_cut_counts_where_it_can_become_no_other() -> None:
    labels = Labels(("incorrect", "correct"))
    assert labels.read_text("incor", whole=False) == LabelReading((1.0, 0.0), None)
    assert isinstance(labels.read_text("incor", whole=True), Failure)


def test_as_few_tokens_as_tell_the_labels_apart_are_asked_for() -> None:
    assert Labels(RATING).tokens_to_tell == 2  # a blank, a digit
    assert Labels(("0.1", "0.2")).tokens_to_tell == 4
    assert Labels(RATING, "Rating:").tokens_to_tell == 2 + len("Rating:")


TEXTS_LABELS = st.text(alphabet=" 123RatingYesno:.\n", max_size=6)
LOGPROBS = st.one_of(st.floats(max_value=0, allow_nan=False), st.floats())


@given(
    steps=st.lists(
        st.tuples(TEXTS_LABELS, st.lists(st.tuples(TEXTS_LABELS, LOGPROBS), max_size=6)).map(
            lambda each: Step(each[0], tuple(each[1]))
        ),
        max_size=6,
    ),
    options=st.sampled_from([RATING, ("yes", "no"), ("0.1", "0.2", "1"), ("A", "B", "C", "D")]),
    opening=st.sampled_from(["", "Rating:"]),
)
def test_whatever_a_server_sends_is_a_distribution_or_a_failure(
    steps: list[Step], options: tuple[str, ...], opening: str
) -> None:
    reading = Labels(options, opening).read(steps)
    if isinstance(reading, Failure):
        assert reading.status in {Status.UNPARSABLE, Status.INVALID_PARAMETER}
        return
    assert len(reading.probabilities) == len(options)
    assert all(0 <= each <= 1 for each in reading.probabilities)
    assert math.fsum(reading.probabilities) == pytest.approx(1)
    assert reading.mass is not None
    assert LEAST_MASS <= reading.mass <= 1


PAIR = ("A", "B", "tie")
BETTER = "The better answer is"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Answer B", "B"),
        ("**Answer A**", "A"),
        ("Answer: B.", "B"),
        ("The better answer is Answer A.", "A"),
        ("The better answer is a tie", "tie"),
        ("A tie.", "tie"),
        ("a **tie**", "tie"),
        ("A is better.", "A"),
        ("a", "A"),
    ],
)
def test_what_stands_before_a_label_of_one_letter_is_no_label(text: str, said: str) -> None:
    reading = Labels(PAIR, BETTER).read_text(text, whole=True)
    assert isinstance(reading, LabelReading)
    assert reading.probabilities == tuple(float(option == said) for option in PAIR)


@pytest.mark.parametrize("text", ["A and B are equally good.", "Answer A or answer B", "A, B", "A/B", "Answer C"])
def test_two_labels_of_one_letter_are_no_verdict(text: str) -> None:
    failure = Labels(PAIR, BETTER).read_text(text, whole=True)
    assert isinstance(failure, Failure)
    assert failure.status is Status.UNPARSABLE


@pytest.mark.parametrize("article", [" a", " A", "A"])
def test_the_article_before_a_label_is_no_vote_for_a(article: str) -> None:
    reading = read(PAIR, {article: 0.7, " B": 0.1, " b": 0.1}, {" tie": 0.9, " A": 0.05, " B": 0.05})
    assert isinstance(reading, LabelReading)
    assert reading.probabilities == pytest.approx((0.05, 0.05, 0.9))


def test_an_article_that_the_judge_does_not_write_is_no_vote_for_a() -> None:
    reading = read(PAIR, {" B": 0.4, " a": 0.3, " A": 0.2})
    assert isinstance(reading, LabelReading)
    assert reading.probabilities == pytest.approx((1 / 3, 2 / 3, 0))
    assert reading.mass == pytest.approx(0.6)


def test_the_word_answer_before_a_label_is_passed_over() -> None:
    tops = {"Answer": 0.8, "A": 0.1}, {" B": 0.9, " A": 0.1}
    for steps in (tops, ({"The": 0.9}, {" better answer": 0.9}, {" is": 1.0}, {" **": 0.9}, *tops)):
        reading = read(PAIR, *steps, opening=BETTER)
        assert isinstance(reading, LabelReading)
        assert reading.probabilities == pytest.approx((0.1, 0.9, 0))


def test_a_reply_is_not_read_further_after_much_white_space() -> None:
    label = Step("1", (("1", -0.1),))
    assert isinstance(Labels(RATING).read([*[Step(" ", ((" ", -0.1),))] * 100, label]), LabelReading)
    assert isinstance(Labels(RATING).read([*[Step(" ", ((" ", -0.1),))] * 170_000, label]), Failure)
