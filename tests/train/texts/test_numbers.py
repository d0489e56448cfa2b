"""Numbers in words; expected values are English spelling, written by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_train.texts.numbers import digits, in_words, ordinal, ordinal_in_words, roman


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, "zero"),
        (13, "thirteen"),
        (40, "forty"),
        (99, "ninety-nine"),
        (100, "one hundred"),
        (1024, "one thousand twenty-four"),
        (250_000, "two hundred fifty thousand"),
        (3_000_001, "three million one"),
    ],
)
def test_in_words(value: int, expected: str) -> None:
    assert in_words(value) == expected


@given(st.lists(st.integers(0, 999_999_999), min_size=2, max_size=2, unique=True))
def test_different_numbers_have_different_words(values: list[int]) -> None:
    assert in_words(values[0]) != in_words(values[1])


@pytest.mark.parametrize("value", [-1, 1_000_000_000])
def test_what_has_no_words_here_is_refused(value: int) -> None:
    with pytest.raises(ValueError, match="between 0 and"):
        in_words(value)


@pytest.mark.parametrize(
    ("value", "figures", "words"),
    [
        (1, "1st", "first"),
        (2, "2nd", "second"),
        (3, "3rd", "third"),
        (5, "5th", "fifth"),
        (11, "11th", "eleventh"),
        (12, "12th", "twelfth"),
        (20, "20th", "twentieth"),
        (21, "21st", "twenty-first"),
        (30, "30th", "thirtieth"),
        (113, "113th", "one hundred thirteenth"),
    ],
)
def test_ordinals(value: int, figures: str, words: str) -> None:
    assert (ordinal(value), ordinal_in_words(value)) == (figures, words)


@pytest.mark.parametrize(("value", "expected"), [(4, "IV"), (9, "IX"), (14, "XIV"), (29, "XXIX")])
def test_roman_figures(value: int, expected: str) -> None:
    assert roman(value) == expected


def test_thousands_are_parted_by_commas() -> None:
    assert digits(1_234_567) == "1,234,567"
