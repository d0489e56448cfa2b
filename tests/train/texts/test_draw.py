"""Answers compared, and what of a draw may be trained on."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import example_count
from tests.train.texts.seeded import seeded

from gradewire_train import material
from gradewire_train.texts import wording
from gradewire_train.texts.draw import Draw, candidate, checked, contrasted, described, normal, some
from gradewire_train.texts.wording import answer_style, misspelt, question_style, with_article

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


SEEDS = st.integers(0, 2**32).map(seeded)
DRAW = Draw("what animal is shown", "The animal is {}", "dog", ("hound", "a dog"), ("brown dog",), ("zebu", "okapi"))
RIGHT, WRONG = {"dog", "hound", "brown dog"}, {"zebu", "okapi"}


@settings(max_examples=example_count(30))
@given(SEEDS)
def test_an_example_pairs_right_answers_and_has_wrong_ones_as_negatives(rng: Random) -> None:
    example = contrasted(rng, "synonyms", DRAW)
    assert {normal(example.anchor), normal(example.positive)} <= RIGHT
    assert {normal(each) for each in example.negatives} <= WRONG
    assert example.question.lower().rstrip("?") == DRAW.question


@settings(max_examples=example_count(30))
@given(SEEDS)
def test_a_detail_is_never_the_reference(rng: Random) -> None:
    assert normal(contrasted(rng, "synonyms", DRAW).anchor) != "brown dog"


@settings(max_examples=example_count(30))
@given(SEEDS)
def test_a_candidate_is_held_against_an_answer_from_elsewhere(rng: Random) -> None:
    example = candidate(rng, DRAW, "1923")
    assert example.anchor == "dog"
    assert example.negatives[1] == "1923"
    assert example.negatives[0] in WRONG


@settings(max_examples=example_count(30))
@given(SEEDS)
def test_a_description_has_the_right_answer_in_it_and_its_negative_the_wrong_one_in_the_same_words(rng: Random) -> None:
    example = described(rng, DRAW)
    positive, negative = example.positive.lower(), example.negatives[0].lower()
    assert any(each in positive for each in RIGHT)
    assert any(each in negative for each in WRONG)
    said = next(each for each in ("brown dog", "a dog", "hound", "dog") if each in positive)
    wrong = next(each for each in WRONG if each in negative)
    assert {positive.replace(said, "").replace(wrong, "")} == {negative.replace(said, "").replace(wrong, "")}


def test_most_descriptions_have_the_wrong_answer_alone_as_their_second_negative() -> None:
    examples = [described(seeded(seed), DRAW) for seed in range(400)]
    alone = sum(example.negatives[1] in example.negatives[0].lower() for example in examples)
    assert alone > 0.8 * len(examples)


def test_there_are_sixty_sentences_and_more_each_with_one_place() -> None:
    assert len(set(material.ANSWERS["sentences"])) == len(material.ANSWERS["sentences"]) >= 60
    assert all(each.count("{}") == 1 for each in material.ANSWERS["sentences"])


def test_a_sentence_begins_with_a_capital_and_takes_the_answer_as_it_is() -> None:
    assert wording.filled("{} is right.", "élan {}") == "Élan {} is right."


@settings(max_examples=example_count(30))
@given(SEEDS)
def test_a_contrast_says_both_and_its_twin_says_them_the_other_way_round(rng: Random) -> None:
    right, turned = wording.contrast(rng, "red", "blue")
    swapped = right.lower().replace("red", "-").replace("blue", "red").replace("-", "blue")
    assert swapped == turned.lower()


@settings(max_examples=example_count(30))
@given(SEEDS, st.from_regex(r"[^\W_][\w ,.'-]{0,18}", fullmatch=True))
def test_a_style_never_makes_another_answer_of_it(rng: Random, answer: str) -> None:
    styled = answer_style(rng, answer)
    assert normal(styled) in {normal(answer), normal(answer.upper()), normal(answer.lower())} or not normal(answer)


@settings(max_examples=example_count(30))
@given(SEEDS)
def test_a_question_keeps_its_words(rng: Random) -> None:
    assert question_style(rng, "where is Milan?").lower().rstrip("?") == "where is milan"


@settings(max_examples=example_count(30))
@given(SEEDS, st.text(max_size=30))
def test_a_slip_keeps_the_number_of_words_and_all_short_ones(rng: Random, text: str) -> None:
    slipped = misspelt(rng, text)
    assert [len(word) for word in slipped.split(" ") if len(word) < 4] == [
        len(word) for word in text.split(" ") if len(word) < 4
    ]
    assert slipped.count(" ") == text.count(" ")


def test_a_slip_changes_one_long_word_and_not_its_first_letter() -> None:
    slips = {misspelt(seeded(seed), "Moriarty of Linz") for seed in range(40)}
    assert len(slips) > 3
    assert all(slip.startswith("M") and slip.endswith(" of Linz") for slip in slips)


def test_articles() -> None:
    assert (with_article("apple"), with_article("dog")) == ("an apple", "a dog")
