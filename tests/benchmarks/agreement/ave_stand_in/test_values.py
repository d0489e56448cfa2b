"""Dates and numbers in another form, which a person would call the same."""

import pytest
from benchmarks.agreement.ave_stand_in.values import other_value_form
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("text", "form", "how"),
    [
        ("May 19, 2017", "19 May 2017", "date order"),
        ("Sept. 3rd, 1066", "3 September 1066", "date order"),
        ("1st of march 1999", "March 1, 1999", "date order"),
        ("22 November 1914", "November 22, 1914", "date order"),
        ("October 1978", "October of 1978", "month"),
        ("October of 1978", "October 1978", "month"),
        ("1974", "the year 1974", "year"),
        ("in 1974", "1974", "year"),
        ("90%", "90 percent", "percent"),
        ("2.5 per cent", "2.5%", "percent"),
        ("two parties", "2 parties", "digits"),
        ("Twenty-one", "21", "digits"),
        ("7 dwarfs", "seven dwarfs", "words"),
        ("99", "ninety-nine", "words"),
    ],
)
def test_dates_and_numbers_are_written_otherwise(text: str, form: str, how: str) -> None:
    assert other_value_form(text) == (form, how)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Paris",
        "100",
        "235 runs",
        "1979/80",
        "the 1960s",
        "May",
        "may 5 people come",
        "\u0663",
        "\u00b2",
        "9" * 10**6,
    ],
)
def test_other_texts_have_no_other_form(text: str) -> None:
    assert other_value_form(text) is None


@given(st.integers(0, 99), st.sampled_from(["", " ships", " of them"]))
def test_digits_and_words_lead_back(number: int, rest: str) -> None:
    words = other_value_form(f"{number}{rest}")
    assert words is not None
    assert not any(letter.isdigit() for letter in words[0])
    assert other_value_form(words[0]) == (f"{number}{rest}", "digits")


@given(st.integers(1, 28), st.sampled_from(["January", "May", "December"]), st.integers(100, 2099))
def test_the_order_of_a_date_leads_back(day: int, month: str, year: int) -> None:
    date = f"{month} {day}, {year}"
    other = other_value_form(date)
    assert other == (f"{day} {month} {year}", "date order")
    assert other_value_form(other[0]) == (date, "date order")
