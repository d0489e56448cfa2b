"""The same value in the ways that people write it, and what only looks like one of them."""

import pytest

from gradewire_server.metrics.values.matching import match_values
from gradewire_server.metrics.values.reading import Outcome, values_of


@pytest.mark.parametrize(
    ("reference", "answer"),
    [
        ("six feet two inches", "1.88 m"),
        ("half a kilo", "500 grams"),
        ("5 km", "5 kilo metres"),
        ("9.8 m/s^2", "9.8 meters per second squared"),
        ("2.7 g/cm^3", "2700 kg/m^3"),
        ("1.5 million", "a million and a half"),
        ("3 teaspoons", "1 tablespoon"),
        ("two weeks", "It took a fortnight."),
        ("an hour", "60 minutes"),
        ("32 \u00b0F", "32 degrees"),
        ("0 K", "-273.15 \u00b0C"),
        ("25\u03c0", "25pi"),
        ("$-2,345", "($2,345)"),
        ("-0.02", "(2)%"),
        ("19.1%", "It rose by 1.7 percentage points to 19.1%."),
        ("12.4%", "ROA 12.4%"),
        ("Chapter IV", "chapter four"),
        ("Sample 3", "It was sample three."),
        ("XIX century", "nineteenth century"),
        ("second to last", "second-to-last"),
        ("7", "It came in at no. 7."),
        ("first", "number one"),
        ("8:15 p.m.", "8:15 in the evening"),
        ("half past seven", "7:30"),
        ("quarter to six", "5:45"),
        ("12 o'clock", "noon"),
        ("3 pm", "at three in the afternoon"),
        ("12 March 1952", "12.03.1952"),
        ("May 2, 2011", "5/2/11"),
        ("February 5, 1961", "2/5/61"),
        ("the early 2000s", "2003"),
        ("fiscal year 2022", "FY22"),
        ("Q2 2023", "Q2 of FY2023"),
        ("12,345", "12'345"),
        ("1776", "1, 776"),
        ("\u03bb1", "lambda_1"),
        ("Ca2+", "Ca^2+ ions"),
    ],
)
def test_ways_of_writing_one_value(reference: str, answer: str) -> None:
    assert match_values("", reference, answer).outcome is Outcome.FOUND


@pytest.mark.parametrize(
    ("reference", "answer"),
    [
        ("8:15 p.m.", "8:15 in the morning"),
        ("half past seven", "7:15"),
        ("second to last", "second"),
        ("early 2000s", "2008"),
        ("before 1900", "after 1900"),
        ("2 tablespoons", "2 teaspoons"),
        ("32 degrees", "32 km"),
        ("-0.02", "(3)%"),
        ("3 pm", "three of them in the afternoon"),
        ("12 March 1952", "version 12.03.1953"),
        ("1,776", "1, 777"),
        ("2-methylpropane", "1-methylpropane"),
        ("\u03bb1", "lambda_2"),
        ("Ca2+", "Ca^3+"),
    ],
)
def test_another_value_written_alike(reference: str, answer: str) -> None:
    assert match_values("", reference, answer).found == 0


@pytest.mark.parametrize("text", ["A Day in the Life", "no one", "at the number", "kilo", "quarter", "an", "o'clock"])
def test_words_of_these_ways_alone_are_no_value(text: str) -> None:
    assert not values_of(text)


def test_has_behind_a_year_is_no_hectare() -> None:
    assert [value.text for value in values_of("FY2022 has decreased")] == ["2022"]


def test_a_version_is_no_date() -> None:
    assert [value.kind for value in values_of("12.13.1952")] == ["symbol"]


def test_a_name_that_is_begun_alike_contradicts_nothing() -> None:
    assert match_values("", "2-methylpropane", "2-methyl propane").contradicted == 0


def test_numbers_of_a_list_are_not_read_as_one_where_the_reference_has_them() -> None:
    assert match_values("", "12 and 345", "12, 345").outcome is Outcome.FOUND


@pytest.mark.parametrize(
    ("question", "reference", "answer", "outcome"),
    [
        ("How many legs has it?", "8", "It has six legs and eight eyes.", Outcome.CONTRADICTED),
        ("How many legs has it?", "8", "It has six eyes and eight legs.", Outcome.FOUND),
        ("How many legs has it?", "8 limbs", "It has six legs, and eight limbs.", Outcome.FOUND),
        ("How many legs has it?", "8", "It has six legs, or eight times one.", Outcome.FOUND),
        ("How many states of 50 states joined?", "16", "Of 50 states, 16 senators joined.", Outcome.FOUND),
        ("How many of the 50 states joined?", "16", "16 states of 50 states", Outcome.FOUND),
        ("How many states?", "16", "Of the states, 16 was the number.", Outcome.FOUND),
        ("What was the growth?", "4.5%", "It fell by 4.5%.", Outcome.CONTRADICTED),
        ("What was the growth?", "4.5%", "It grew by 4.5%.", Outcome.FOUND),
        ("How much did it fall?", "12%", "It rose 12%.", Outcome.CONTRADICTED),
        ("How much did sales change?", "12%", "They fell by 12%.", Outcome.FOUND),
        ("What was the growth?", "a fall of 4.5%", "It fell by 4.5%.", Outcome.FOUND),
        ("What is capital expenditure (in USD millions)?", "$1577.00", "It was $1,577 million.", Outcome.FOUND),
        ("What is capital expenditure in the millions?", "$1577.00", "It was $1,577 million.", Outcome.FOUND),
        ("Who was in USD a million times?", "$1577.00", "It was $1,577 million.", Outcome.CONTRADICTED),
    ],
)
def test_what_the_question_asks_of(question: str, reference: str, answer: str, outcome: Outcome) -> None:
    assert match_values(question, reference, answer).outcome is outcome


@pytest.mark.parametrize(
    ("reference", "answer"),
    [
        ("5,000", "4,980"),  # a single digit says little below ten thousand
        ("about 1503", "1510"),  # of a year that is not round two years are near
    ],
)
def test_near_is_not_equal(reference: str, answer: str) -> None:
    match = match_values("", reference, answer)
    assert match.found < match.wanted


def test_a_number_behind_another_one_in_a_denial_is_not_denied() -> None:
    assert [value.denied for value in values_of("not 7 miles from the 9 km mark")] == [True, False]
    assert [value.denied for value in values_of("not 7 or 9")] == [True, True]


@pytest.mark.parametrize(
    ("question", "reference", "answer", "outcome"),
    [
        ("What is the account number?", "4471 0098", "44710098", Outcome.FOUND),
        ("What is the account number?", "44710098", "44710090", Outcome.CONTRADICTED),
        ("What is the phone number?", "020 7946 0112", "020-7946-0113", Outcome.CONTRADICTED),
        ("What is the PIN?", "0412", "412", Outcome.CONTRADICTED),
        ("Which version is it?", "3.10", "3.1", Outcome.CONTRADICTED),
        ("How many account numbers are there?", "1,200", "1200", Outcome.FOUND),
        ("How many people live there?", "44,710,098", "44,710,099", Outcome.CONTRADICTED),
        ("How many people live there?", "44,710,098", "44.7 million", Outcome.FOUND),
    ],
)
def test_numbers_that_name_a_thing_are_compared_digit_by_digit(
    question: str, reference: str, answer: str, outcome: Outcome
) -> None:
    assert match_values(question, reference, answer).outcome is outcome
