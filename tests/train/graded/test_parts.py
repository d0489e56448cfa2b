from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_train.graded.parts import Part, PartRandom, TooFewError

TEXTS = st.lists(st.text(st.characters(codec="ascii", categories=["L"]), min_size=1, max_size=8), max_size=40)


@given(TEXTS)
def test_every_text_is_in_one_part(texts: Sequence[str]) -> None:
    train, evaluate = Part("train"), Part("eval")
    assert all(train.owns(text) != evaluate.owns(text) for text in texts)
    if len(texts) >= 6:
        assert sorted([*train.of(texts), *evaluate.of(texts)]) == sorted(texts)


@given(st.sets(st.integers(0, 999), min_size=3, max_size=30))
def test_of_any_list_of_templates_each_part_has_some(numbers: set[int]) -> None:
    templates = [f"number {number} is {{}}" for number in numbers]
    train, evaluate = (set(Part(name).of(templates)) for name in ("train", "eval"))  # type: ignore[arg-type]
    assert train
    assert evaluate
    assert not train & evaluate
    assert train | evaluate == set(templates)


def test_case_does_not_move_a_word() -> None:
    assert all(Part("eval").owns(word) == Part("eval").owns(word.upper()) for word in ("lantern", "Straße", "oak"))


def test_numbers_and_pairs_are_whole_in_both() -> None:
    assert Part("eval").of((-1, 1, 2, 3, 4, 5, 6)) == (-1, 1, 2, 3, 4, 5, 6)
    assert Part("eval").of(("am", "pm")) == ("am", "pm")


def test_it_draws_from_its_own_part_and_says_when_that_is_too_little() -> None:
    part = Part("eval")
    words = [f"word{number}" for number in range(50)]
    rng = PartRandom(part, "1")
    assert all(part.owns(rng.choice(words)) for _ in range(50))
    assert all(map(part.owns, rng.sample(words, 5)))
    with pytest.raises(TooFewError):
        rng.sample(words, 40)
