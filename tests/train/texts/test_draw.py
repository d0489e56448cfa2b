"""Answers compared, and what of a draw may be trained on."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.train.texts.seeded import seeded

from gradewire_train.texts.draw import Draw, checked, normal, some

ANSWERS = st.lists(st.text(max_size=12), max_size=5).map(tuple)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The Café", "cafe"),
        ("1,000", "1000"),
        ("a dog.", "Dog"),
        ("\uff21bc", "abc"),  # full width
        ("sea-horse", "sea horse"),
        ("THE", "the"),  # an article alone is still a word
    ],
)
def test_forms_of_one_answer_are_equal(one: str, other: str) -> None:
    assert normal(one) == normal(other)


@pytest.mark.parametrize(
    ("one", "other"), [("1.5", "15"), ("-3", "3"), ("7:30", "730"), ("1/2", "12"), ("cat", "cats"), ("+", "-")]
)
def test_different_answers_stay_different(one: str, other: str) -> None:
    assert normal(one) != normal(other)


@given(answer=st.text(max_size=12), same=ANSWERS, looser=ANSWERS, wrong=ANSWERS)
def test_no_wrong_answer_of_a_checked_draw_is_a_right_one(
    answer: str, same: tuple[str, ...], looser: tuple[str, ...], wrong: tuple[str, ...]
) -> None:
    found = checked(Draw("what", "", answer, same, looser, wrong))
    if found is None:
        assert not answer.strip() or all(
            not each.strip() or normal(each) in {normal(right) for right in (answer, *same, *looser)} for each in wrong
        )
        return
    right = {normal(each) for each in (answer, *same, *looser)}
    assert found.wrong
    assert not right & {normal(each) for each in found.wrong}
    assert len(set(found.wrong)) == len(found.wrong)
    assert answer not in (*found.same, *found.looser)


def test_a_sample_never_asks_for_more_than_there_is() -> None:
    assert sorted(some(seeded(1), [1, 2, 3], 5)) == [1, 2, 3]
    assert len(some(seeded(1), [1, 2, 3], 2)) == 2
