"""From draws to examples: what is put where, and in what style."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import example_count
from tests.train.texts.seeded import seeded

from gradewire_train.texts import describe
from gradewire_train.texts.draw import Draw, normal
from gradewire_train.texts.misspell import misspelt
from gradewire_train.texts.style import answer_style, question_style, with_article
from gradewire_train.texts.tasks import candidate, contrasted, described

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
    assert len(set(describe._SENTENCES)) == len(describe._SENTENCES) >= 60
    assert all(each.count("{}") == 1 for each in describe._SENTENCES)


def test_a_sentence_begins_with_a_capital_and_takes_the_answer_as_it_is() -> None:
    assert describe.filled("{} is right.", "élan {}") == "Élan {} is right."


@settings(max_examples=example_count(30))
@given(SEEDS)
def test_a_contrast_says_both_and_its_twin_says_them_the_other_way_round(rng: Random) -> None:
    right, turned = describe.contrast(rng, "red", "blue")
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
