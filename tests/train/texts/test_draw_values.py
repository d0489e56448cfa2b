"""Draws over values: what is drawn as the same has the same value, what is drawn as wrong has another one."""

import datetime as dt
import re
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.train.texts.seeded import seeded

from gradewire_train.texts import choices, dates, names, numbers
from gradewire_train.texts.draw import Draw, checked, normal
from gradewire_train.texts.numbers import digits, in_words

SEEDS = st.integers(0, 2**32).map(seeded)
WORDS = {in_words(value): value for value in range(10_000)}
MONTHS = [dt.date(2000, month, 1).strftime("%B").lower() for month in range(1, 13)]


def value_of(answer: str) -> int | None:
    """The number that an answer of `counted` gives, read independently of how it was written."""
    text = answer.lower().replace(",", "")
    if text.startswith(("a pair", "a couple", "both")):
        return 2
    if text in {"a single one", "only one"}:
        return 1
    if found := re.search(r"(\d+(?:\.\d+)?) million", text):
        return round(float(found[1]) * 1_000_000)
    if found := re.search(r"\d+", text):
        return int(found[0])
    bare = text.removeprefix("there are ")
    words = bare.split()
    for end in range(len(words), 0, -1):
        if (value := WORDS.get(" ".join(words[:end]))) is not None:
            return None if {"thousand", "million"} & set(words[end:]) else value
    return None


@given(SEEDS)
def test_numbers_that_are_the_same_have_one_value_and_wrong_ones_have_others(rng: Random) -> None:
    draw = checked(numbers.counted(rng))
    assert draw is not None
    value = value_of(draw.answer)
    if value is None or value >= 10_000:  # large ones in words are left to their digits
        value = next(found for each in draw.same if each[:1].isdigit() and (found := value_of(each)) is not None)
    for each in draw.same:
        assert value_of(each) in {value, None}, each
    for each in draw.wrong:
        assert normal(each) not in {normal(digits(value)), normal(in_words(value))}
        assert value_of(each) != value


@given(SEEDS)
def test_days_that_are_the_same_are_one_day_and_wrong_ones_are_other_days(rng: Random) -> None:
    draw = checked(dates.dated(rng))
    assert draw is not None
    full = [day for each in (draw.answer, *draw.same) if (day := day_of(each))]
    assert len(set(full)) == 1
    year = full[0].year
    for each in draw.looser:
        assert str(year) in each
    for each in draw.wrong:
        assert day_of(each) != full[0]
        if each.isdigit():
            assert int(each) != year


def day_of(text: str) -> dt.date | None:
    if found := re.fullmatch(r"(\d{4})-(\d\d)-(\d\d)", text):
        return dt.date(int(found[1]), int(found[2]), int(found[3]))
    year, month, day = (
        re.search(r"\b(\d{4})\b", text),
        re.search(r"\b([A-Z][a-z]{2,})\b", text),
        re.search(r"\b(\d{1,2})(?:st|nd|rd|th)?\b", text),
    )
    if not year or not month or not day:
        return None
    number = next(at for at, name in enumerate(MONTHS, 1) if name.startswith(month[1].lower()[:3]))
    return dt.date(int(year[1]), number, int(day[1]))


@given(SEEDS)
def test_a_wrong_year_is_another_year_in_another_decade(rng: Random) -> None:
    draw = checked(dates.yeared(rng))
    if draw is None:
        return
    year = int(re.findall(r"\d{4}", draw.answer)[0])
    for each in draw.wrong:
        assert int(re.findall(r"\d{4}", each)[0]) // 10 != year // 10


@given(SEEDS)
def test_times_of_day_that_are_the_same_are_one_minute(rng: Random) -> None:
    draw = checked(dates.timed(rng))
    assert draw is not None
    right = minutes(draw.answer)
    assert all(minutes(each) == right for each in draw.same if each[0].isdigit())
    assert all(minutes(each) != right for each in draw.wrong)


def minutes(text: str) -> int:
    hour, minute, half = re.fullmatch(r"(\d+)(?::(\d+))?(?: (.*))?", text).groups()  # type: ignore[union-attr] # fails
    after_noon = 12 * 60 if half and half.startswith("p") else 0
    return int(hour) * 60 + int(minute or 0) + after_noon


@given(SEEDS)
def test_nobody_of_the_family_is_wrong_where_a_surname_alone_is_right(rng: Random) -> None:
    draw = checked(names.named(rng))
    assert draw is not None
    single = {each for each in (draw.answer, *draw.same) if " " not in each}
    for name in single:
        assert not any(each.split()[-1] == name for each in draw.wrong)


@given(SEEDS)
def test_a_wrong_colour_is_none_that_could_be_taken_for_it(rng: Random) -> None:
    draw = checked(choices.coloured(rng))
    assert draw is not None
    assert "grey" not in draw.answer.split() or not {"silver", "gray"} & {each.split()[-1] for each in draw.wrong}
    assert normal(draw.answer) not in {normal(each) for each in draw.wrong}


@given(SEEDS)
def test_yes_is_never_wrong_where_yes_is_right(rng: Random) -> None:
    draw = checked(choices.answered(rng))
    assert draw is not None
    yes, no = ("yes", "y", "true", "correct", "yeah"), ("no", "n", "false", "nope", "incorrect")
    right = {normal(each) for each in (draw.answer, *draw.same)}
    wrong = {normal(each) for each in draw.wrong}
    agreed = bool(right & set(yes))
    assert not right & set(no if agreed else yes)
    assert not wrong & set(yes if agreed else no)


@given(SEEDS)
def test_lists_keep_their_items_in_right_answers_and_lose_one_in_wrong_ones(rng: Random) -> None:
    draw = checked(choices.listed(rng))
    assert draw is not None
    items = set(re.split(r", | and ", draw.answer))
    for each in (*draw.same, *draw.looser):
        assert all(item in each for item in items)
    for each in draw.wrong:
        assert not all(item in each for item in items)


@given(SEEDS)
def test_a_wrong_title_is_another_title(rng: Random) -> None:
    draw = checked(names.titled(rng))
    assert draw is not None
    assert normal(draw.answer) not in {normal(each) for each in draw.wrong}
    assert "{who}" not in draw.question + draw.statement


@pytest.mark.parametrize(
    "kind", [numbers.counted, numbers.measured, numbers.ranked, dates.dated, dates.spanned, names.named, choices.listed]
)
def test_statements_have_one_place_for_the_answer(kind: "object") -> None:
    assert callable(kind)
    for seed in range(200):
        draw: Draw = kind(seeded(seed))
        assert draw.statement.count("{}") == 1
        assert "{" not in draw.question
