"""value_match: the share of a reference's values, and where it does not apply."""

import re
from typing import Any, Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.support.engines.programs import Table

from gradewire_proto.parts import ValueMatchParts
from gradewire_server.domain.items import Failure, Item, ReferenceEntry, ResultWarning, Status
from gradewire_server.domain.metric import NO_MODEL
from gradewire_server.metrics.common import AnswerParameters
from gradewire_server.metrics.matching.value_match import ValueMatchMetric, has_verbatim, vetoes_text_match


def grade(prediction: str, *references: str, question: str = "") -> Any:
    item = Item("1", question, references, prediction)
    return Table().run(ValueMatchMetric().score(item, AnswerParameters(), NO_MODEL))


def test_the_share_of_the_values_that_are_found() -> None:
    result = grade("They won three cups in Rome.", "three cups and 5 kg of gold")
    assert result.score == pytest.approx(1 / 2)
    assert (result.matched_reference, result.correct, result.warnings) == (0, False, ())
    assert result.parts == ValueMatchParts(
        wanted=2, found=1, contradicted=0, missing=1, coarser=0, extra=0, kinds={"quantity": "missing"}
    )


def test_one_contradicted_value_is_no_score() -> None:
    result = grade("three cups and 6 kg of gold, in 1912", "three cups and 5 kg of gold")
    assert result.score == 0
    assert result.parts == ValueMatchParts(
        wanted=2, found=1, contradicted=1, missing=0, coarser=0, extra=1, kinds={"quantity": "contradicted"}
    )


def test_the_best_reference_is_named_and_of_equals_the_first() -> None:
    assert grade("It was in 1912.", "1913", "April 1912", "1912", "the 1910s").matched_reference == 2
    assert grade("nothing of it", "1913", "1912").matched_reference == 0
    assert grade("in 1920", "three of them in 1913", "three").matched_reference == 1, (
        "missing is better than contradicted"
    )


def test_a_coarser_date_is_missing_and_said_to_be_coarser() -> None:
    result = grade("in 1912", "15 April 1912")
    assert (result.score, result.correct) == (0, False)
    assert (result.parts.missing, result.parts.coarser) == (1, 1)
    assert grade("in 1912", "15 April 1912", question="In what year did she sink?").correct


def test_what_the_question_says_is_not_wanted_unless_there_is_nothing_else() -> None:
    question = "Who won the cup in 1998 and in 2002?"
    assert grade("Brazil, in 2002", "In 1998 France, 2 goals ahead", question=question).parts.wanted == 1
    assert grade("7 is larger", "7", question="Which is larger, 5 or 7?").correct
    assert not grade("5 is larger", "7", question="Which is larger, 5 or 7?").correct


def test_references_without_values_are_nothing_to_compare() -> None:
    result = grade("in 1912", "Rome", "a city")
    assert (result.status, result.score) == (Status.INVALID_INPUT, None)
    assert "contain no value" in result.message


def test_a_reference_without_values_may_be_what_makes_it_right() -> None:
    result = grade("in Rome", "1912", "Rome")
    assert result.status is Status.INVALID_INPUT
    assert "a reference contains no value" in result.message
    assert grade("in 1912", "Rome", "1912").matched_reference == 1


@pytest.mark.parametrize(
    ("prediction", "references"),
    [("5 " * 9_000, ("5",)), ("5", ("5",) * 65), ("5", ("1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16",) * 20)],
    ids=["prediction", "references", "values"],
)
def test_what_is_beyond_the_bounds_is_told(prediction: str, references: tuple[str, ...]) -> None:
    assert grade(prediction, *references).warnings == (ResultWarning.TRUNCATED,)


def test_blank_texts_are_checked_first() -> None:
    assert grade(" ", "1912").status is Status.EMPTY_PREDICTION
    assert grade("1912", "").status is Status.INVALID_INPUT


def test_prepare_asks_for_nothing_and_checks_references() -> None:
    assert Table().run(ValueMatchMetric().prepare(ReferenceEntry("", ("1912",)), AnswerParameters())) is None
    failure = Table().run(ValueMatchMetric().prepare(ReferenceEntry("", ("",)), AnswerParameters()))
    assert isinstance(failure, Failure)
    assert failure.status is Status.INVALID_INPUT


@pytest.mark.parametrize(
    ("question", "reference", "prediction", "correct"),
    [
        # The sense of a value: its sign, bound, share and the result of a calculation
        ("What is the charge?", "-3", "3", False),
        ("How many guests signed in?", "57", "at least 57", False),
        ("How many people came?", "60", "60%", False),
        ("How many sweets are left?", "30", "30 - 12 = 18", False),
        ("How many marbles has he now?", "9", "He had 30 and lost 9, so \\boxed{21}.", False),
        ("How many eggs are there?", "6", "The answer is 6!", True),
        ("How many arrangements are there?", "720", "6!", True),
        # Notation
        ("How many?", "9500", "\\$9{,}500", True),
        ("What angle?", "90", "90^\\circ", True),
        ("What is the probability?", "0.5", "50\\%", True),
        ("What is the charge?", "4.8 \u00d7 10^{-19}", "4.8e-19", True),
        ("How many hours?", "3.5", "$3\\frac{1}{2}$", True),
        ("How many bytes?", "65536", "65_536", True),
        ("How many people?", "3,45,000", "345,000", True),
        # Remarks behind a value, and equal amounts beside it
        ("How many ounces is a pound?", "16", "16 oz = 1 lb", True),
        ("Solve for x.", "4", "x = 4, y = 16", True),
        ("What is the derivative?", "3x^2", "The derivative is 3x^2. For x = 2 it is 12.", True),
        ("Solve.", "(1, -2)", "The solution is (1, -2), which satisfies both: 1 + 2 = 3 and 2 - 2 = 0.", True),
        ("Solve.", "{1, 2}", "{1, 2}. No wait, {1, 3}.", False),
        ("How heavy is it?", "2.5 kg", "2,5 kg", True),
        ("What is the dose?", "500 mg", "500 mcg", False),
        # Rounding
        ("Give the root of 2 to three decimals.", "1.414", "1.4", False),
        ("Round 17.846 to one decimal place.", "17.8", "17.846 rounds to 17.9", False),
        ("How many members voted?", "1,487", "about 1,500", False),
        # Mathematical objects
        ("On which interval is it defined?", "[2,5]", "(2,5)", False),
        ("What is the matrix?", "[[1,2],[3,4]]", "[[1,3],[2,4]]", False),
        ("Solve for x.", "\\pm 3", "x = 3 or x = -3", True),
    ],
)
def test_values_in_the_notation_that_people_use(
    question: str, reference: str, prediction: str, *, correct: bool
) -> None:
    assert grade(prediction, reference, question=question).correct is correct


@pytest.mark.parametrize(
    ("question", "references", "prediction", "vetoed"),
    [
        ("What is the slope?", ("-2",), "2", True),
        ("Solve the inequality.", ("x < 7",), "x > 7", True),
        ("What is the value to two decimals?", ("3.14",), "314", True),
        ("Which formula?", ("CO",), "Co", True),
        ("What is the slope?", ("-2",), "-2", False),
        ("What is the slope?", ("-2", "2"), "2", False),
        ("What is the slope?", ("-2",), "5", False),  # no match of text
        ("Who was it?", ("Ada Lovelace",), "Ada Lovelace", False),
    ],
)
def test_a_contradicted_value_vetoes_matches_of_text(
    question: str, references: tuple[str, ...], prediction: str, *, vetoed: bool
) -> None:
    assert vetoes_text_match(Item("1", question, references, prediction)) is vetoed


_PIECES: Final = st.sampled_from(["5", "5.5", "cat", "é", " ", ".", ",", "-", "$", "%", "°", "a", "€", "=", "\u2212"])


@example("-5 5", "5")
@example("5 5 5 5 5", "5 5 5")
@example("a5 5 5 5.5 5 5", "5 5")
@example("-5.5.5 5.5", "5.5")
@given(st.lists(_PIECES, max_size=8).map("".join), st.lists(_PIECES, min_size=1, max_size=3).map("".join))
def test_a_reference_is_verbatim_where_nothing_goes_on_around_it(prediction: str, reference: str) -> None:
    wanted = re.escape(reference.strip())
    around = rf"(?<![\w.,+<>=$€£±\u2212-]){wanted}(?![\w%°]|[.,]\d)"
    assert has_verbatim(prediction, reference) is (re.search(around, prediction) is not None)
