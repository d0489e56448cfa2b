"""Features of `calibrated`, worked out by hand; what more of a reference in an answer never lowers; hostile items."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gradewire_server.domain.item import Item
from gradewire_server.domain.result import SmileParts
from gradewire_server.metrics.calibrated.features.catalog import FEATURES
from gradewire_server.metrics.calibrated.features.cues import denies
from gradewire_server.metrics.calibrated.features.inputs import CalibratedInputs
from gradewire_server.metrics.calibrated.features.measure import features

NAMES = [feature.name for feature in FEATURES]
TERMS = SmileParts(
    sentence=0.7, keyword=0.8, exact=0.25, lexical=0.5, best_window="", bin=3, correct=False, harmonic_mean=None
)


def inputs(prediction: str, *references: str, question: str = "", best: int = 0) -> CalibratedInputs:
    return CalibratedInputs(
        item=Item("1", question, references, prediction),
        truncated=False,
        best=best,
        smile=0.6,
        terms=TERMS,
    )


def of(prediction: str, *references: str, question: str = "", best: int = 0) -> dict[str, float]:
    return dict(
        zip(NAMES, features(inputs(prediction, *references, question=question, best=best)).tolist(), strict=True)
    )


def test_every_feature_has_a_name_of_its_own_and_a_direction() -> None:
    assert len(set(NAMES)) == len(NAMES)
    assert {feature.monotone for feature in FEATURES} == {-1, 0, 1}
    assert all((feature.width > 0) == (feature.name in {"sentence", "keyword"}) for feature in FEATURES)


def test_smiles_terms_are_passed_on() -> None:
    found = of("a dog", "a cat")
    assert (found["sentence"], found["keyword"], found["exact"]) == (0.7, 0.8, 0.25)


def test_words_of_a_reference_are_weighed() -> None:
    """A stop word weighs .05, "beatles" (new, lemma "beatle") 1, "band" .2 as the question has it: .25 of 1.25."""
    found = of("a band from the north", "the Beatles band", question="Which band?")
    assert found["recall"] == pytest.approx(0.25 / 1.25)
    assert (found["new_recall"], found["echo"], found["last_word"]) == (0.0, 0.5, 1.0)


@pytest.mark.parametrize(
    ("prediction", "reference"),
    [
        ("It was Niccolò Paganini.", "Niccolo Paganini"),  # accents
        ("in 1951-1952, they say", "1951\u20131952"),  # dashes part words
        ("Hyori's bed", "hyori\u2019s bed"),  # possessives
        ("ABBA's videos", "ABBA (he directed almost all of them)"),  # asides
        ("a turlough", "turlough, or turlach"),  # second spellings
        ("season 8", "Season eighth"),  # ordinals
        ("There are twelve of them", "12"),  # number words
        ("1000 of them", "1,000"),
    ],
)
def test_a_reference_is_found_however_it_is_written(prediction: str, reference: str) -> None:
    assert of(prediction, reference)["contained"] == 1.0


def test_art_is_not_in_party() -> None:
    assert of("a party", "art")["contained"] == 0.0


def test_the_farthest_word_by_edits() -> None:
    """neemuchwalla and neemuchwala differ by one insertion: 1 - 1 / 23; "abid" and "abidali" by three: 1 - 3 / 11."""
    found = of("Abidali Neemuchwalla", "Abid Neemuchwala")
    assert found["spelling_least"] == pytest.approx(1 - 3 / 11)
    assert of("Abid Neemuchwalla", "Abid Neemuchwala")["spelling_least"] == pytest.approx(1 - 1 / 23)


def test_numbers_are_near_by_value_and_not_by_spelling() -> None:
    found = of("13 of them", "3")
    assert (found["spelling_least"], found["spelling_within"], found["spelling_begin"]) == (0.0, 0.0, 0.0)
    assert found["number_near"] == pytest.approx(3 / 13)
    assert of("3 of them", "3")["spelling_within"] == 1.0


def test_parts_of_an_enumeration() -> None:
    found = of("Ecuador, Peru, Bolivia", "Brazil, Colombia and Ecuador")
    assert found["parts_least"] == 0.0
    assert found["recall"] > 0.0
    assert of("Ecuador, Colombia, and Brazil", "Brazil, Colombia and Ecuador")["parts_least"] == 1.0


@pytest.mark.parametrize(
    ("prediction", "reference", "share", "beside"),
    [
        ("two", "2", 1.0, 0),
        ("1,000 people", "one thousand", 1.0, 0),
        ("twenty-one", "21", 1.0, 0),
        ("Twenty. One of them", "20", 1.0, 1),
        ("three hundred and five", "305", 1.0, 0),
        ("6 feet 1 inch (1.85 m)", "6ft 1in", 1.0, 1),
        ("\u00bd", "half", 1.0, 0),
        ("\u0663", "3", 1.0, 0),
        ("4", "2", 0.0, 1),
        ("none", "2", 0.0, 0),
        ("7 to 9", "7 and 8 of 10", 1 / 3, 1),
    ],
)
def test_numbers_as_values(prediction: str, reference: str, share: float, beside: float) -> None:
    found = of(prediction, reference)
    assert found["number_recall"] == pytest.approx(share)
    assert found["numbers_beside"] == beside


def test_numbers_of_the_question_contradict_nothing() -> None:
    found = of("In 2017 there were no more", "5", question="How many in 2017?")
    assert (found["numbers_beside"], found["years_beside"]) == (0.0, 0.0)


def test_without_numbers_nothing_is_said_of_them() -> None:
    found = of("a cat 7", "a cat")
    assert all(math.isnan(found[name]) for name in ("number_recall", "number_near", "date_conflict"))
    assert found["numbers_beside"] == 1.0


@pytest.mark.parametrize(
    ("prediction", "conflicts"),
    [
        ("September 15, 1996", 0.0),
        ("1996", 0.0),  # coarser is no contradiction
        ("September 1996", 0.0),
        ("the 15th of September", 0.0),
        ("in the 20th century", 0.0),
        ("October 15, 1996", 1.0),
        ("Sep 14, 1996", 1.0),
        ("1997", 1.0),
        ("the 19th century", 1.0),
        ("October 24, 1887", 4.0),  # year, month, day, century
        ("nobody knows", 0.0),
    ],
)
def test_dates_contradict_each_other_kind_by_kind(prediction: str, conflicts: float) -> None:
    assert of(prediction, "September 15, 1996")["date_conflict"] == conflicts


def test_the_reference_that_fits_best_decides_about_dates() -> None:
    assert of("in May 1980", "June 1979", "May 3, 1980")["date_conflict"] == 0.0
    assert of("it may be 1980", "June 1980")["date_conflict"] == 0.0  # the verb


def test_refusals_are_counted() -> None:
    assert of("I'm sorry, I cannot say. It was not Paris.", "Paris")["refusals"] == 2.0
    assert of("It was Paris, not Rome.", "Paris")["refusals"] == 0.0


@pytest.mark.parametrize(
    ("prediction", "denied"),
    [
        ("It is Paris.", False),
        ("It is Paris, not Rome.", False),
        ("Not only Paris", False),
        ("It is not Lyon, but Paris", False),
        ("It is not Paris, he said. It is Paris, he said then.", False),
        ("It is not Paris.", True),
        ("It isn\u2019t Paris", True),
        ("It was never in Paris; it was Rome", True),
        ("I'm sorry, I don't know whether it is Paris.", True),
        ("As an AI I cannot say; people believe that it is Paris.", True),
    ],
)
def test_an_answer_that_denies_what_it_names(prediction: str, denied: bool) -> None:  # noqa: FBT001 - a case's outcome
    assert denies(inputs(prediction, "Paris", question="Which city?")) is denied


@pytest.mark.parametrize(
    "reference",
    [
        "St. Louis",
        "J. K. Rowling",
        "Paris, France",
        "1,000",
        "10:30",
        "Dr. Seuss",
        "Washington, D.C.",
        "(What?) (Why!)",
    ],
)
def test_marks_inside_a_reference_hide_no_denial(reference: str) -> None:
    assert denies(inputs(f"It is not {reference}.", reference, question="Which?"))
    assert not denies(inputs(f"It is {reference}.", reference, question="Which?"))


@pytest.mark.parametrize(
    ("prediction", "reference"),
    [
        ("unknown", "unknown"),
        ("I Am Not Your Negro", "I Am Not Your Negro"),
        ("It did not fall until 1989", "1989"),
        ("No doubt Paris", "Paris"),
        ("It is none other than Paris", "Paris"),
    ],
)
def test_words_of_denials_that_deny_nothing(prediction: str, reference: str) -> None:
    assert not denies(inputs(prediction, reference, question="Which?"))


def test_a_negation_of_the_question_denies_nothing() -> None:
    assert not denies(inputs("He did not win the French Open", "French Open", question="Which did he not win?"))


def test_names_in_references() -> None:
    assert of("x", "the Moon", "a star", "cheese", "iron")["reference_names"] == 0.25


def test_smiles_best_reference_counts_whatever_its_place() -> None:
    """Of a thousand long references not all are read, the best one always is."""
    others = [f"{'filler ' * 60}{number}" for number in range(400)]
    assert of("The answer is Paris.", *others, "Paris", best=400)["contained"] == 1.0
    assert of("The answer is Paris.", *others, "Paris")["contained"] == 0.0


def test_letters_of_scripts_without_blanks_are_words() -> None:
    assert of("答えは東京です", "東京")["contained"] == 1.0
    assert of("答えは大阪です", "東京")["recall"] == 0.0


PRESENT = (
    *("contained", "recall", "last_word", "new_recall", "parts_least"),
    *("spelling_least", "spelling_begin", "number_recall", "year_recall", "century_recall", "number_near"),
)
words = st.text(st.characters(codec="utf-8"), max_size=40).filter(lambda text: bool(text.strip()))


@given(words, words.filter(lambda text: any(map(str.isalnum, text))), words)
@example("In 1996", "0", "0")
@example("one", "ten", "1")
def test_saying_the_reference_as_well_lowers_no_match(prediction: str, reference: str, question: str) -> None:
    before = of(prediction, reference, question=question)
    after = of(f"{prediction} . {reference}", reference, question=question)
    for name in PRESENT:
        assert math.isnan(before[name]) or after[name] >= before[name] - 1e-12, name
    assert after["recall"] == pytest.approx(1.0)


@given(words, st.lists(words, min_size=1, max_size=4), st.text(max_size=20))
def test_any_text_gives_finite_features_the_same_each_time(
    prediction: str, references: list[str], question: str
) -> None:
    first, second = (features(inputs(prediction, *references, question=question)) for _ in range(2))
    assert not np.isinf(first).any()
    np.testing.assert_array_equal(first, second)
    for feature, value in zip(FEATURES, first, strict=True):
        if feature.name not in {"numbers_beside", "years_beside", "date_conflict", "refusals"} and not math.isnan(
            value
        ):
            assert 0 <= value <= 1 + 1e-9, feature.name


HOSTILE: dict[str, Any] = {
    "one word": ("x" * 1_000_000, ["y" * 1_000_000]),
    "digits": ("9" * 1_000_000, ["9" * 1_000_000] * 2),
    "ordinals": ("1st" * 300_000, ["2nd" * 1000] * 100),
    "brackets": ("(" * 100_000, ["(" * 1000] * 300),
    "apostrophes": ("'" * 100_000, ["'s"] * 300),
    "expanding": ("\ufdfa" * 100_000, ["\ufdfa" * 500] * 300),
    "blanks": (" " * 1_000_000 + "x", [" " * 100_000 + "x"]),
    "control characters": ("\x00\x01 \x02", ["\x00", "\u0301"]),
    "millions": ("million " * 10_000, ["million million"]),
    "references": ("a cat", [f"cat {number}" for number in range(1000)]),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_items_have_features_too(name: str) -> None:
    """Bounded reading: quadratic work on any of these would take minutes, and the suite would not end."""
    prediction, references = HOSTILE[name]
    found = features(inputs(prediction, *references, question=prediction))
    assert not np.isinf(found).any()
