"""Features of `correctness`, worked out by hand; what more of a reference in an answer never lowers; hostile items."""

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_proto.parts import SmileParts
from gradewire_server.domain.items import Item
from gradewire_server.metrics.correctness.features import FEATURES, INPUT_KIND, CorrectnessInputs, features, input_kind

NAMES = [feature.name for feature in FEATURES]
TERMS = SmileParts(
    sentence=0.7, keyword=0.8, exact=0.25, lexical=0.5, best_window="", bin=3, correct=False, harmonic_mean=None
)


def inputs(prediction: str, *references: str, question: str = "", best: int = 0) -> CorrectnessInputs:
    return CorrectnessInputs(
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


PAGE = (Path(__file__).parents[4] / "docs/reference/correctness.md").read_text(encoding="utf-8")


def first_cells(section: str) -> list[tuple[str, str]]:
    """Each feature that a section's table names in its first cells, and its second cell."""
    lines = PAGE.partition(f"\n## {section}\n")[2].partition("\n## ")[0].splitlines()
    rows = [line.split("|") for line in lines if line.startswith("| `")]
    return [(name, row[2].strip()) for row in rows for name in re.findall(r"`(\w+)`", row[1])]


def test_the_reference_page_has_every_feature_in_order_with_its_direction() -> None:
    arrows = {1: "\u2191", -1: "\u2193", 0: ""}
    assert first_cells("Features") == [(feature.name, arrows[feature.monotone]) for feature in FEATURES]
    assert f"{len(FEATURES)} numbers from the texts" in PAGE
    assert [name for name, _ in first_cells("Doubts")] == [feature.name for feature in FEATURES if feature.doubts]
    assert {name for name, _ in first_cells("Rules")} == {feature.name for feature in FEATURES if feature.rules_out}


def test_smiles_terms_are_passed_on() -> None:
    found = of("a dog", "a cat")
    assert (found["sentence"], found["keyword"], found["exact"]) == (0.7, 0.8, 0.25)


def test_words_of_a_reference_are_weighed() -> None:
    """A stop word weighs .05, "beatles" (new, lemma "beatle") 1, "band" .2 as the question has it: .25 of 1.25."""
    found = of("a band from the north", "the Beatles band", question="Which band?")
    assert found["recall"] == pytest.approx(0.25 / 1.25)
    assert (found["new_recall"], found["last_word"]) == (0.0, 1.0)


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


def test_numbers_are_no_near_spellings() -> None:
    found = of("13 of them", "3")
    assert (found["spelling_least"], found["spelling_within"], found["spelling_begin"]) == (0.0, 0.0, 0.0)
    assert of("3 of them", "3")["spelling_within"] == 1.0


def test_parts_of_an_enumeration() -> None:
    found = of("Ecuador, Peru, Bolivia", "Brazil, Colombia and Ecuador")
    assert found["member_recall"] == pytest.approx(1 / 3)
    assert found["recall"] > 0.0
    assert of("Ecuador, Colombia, and Brazil", "Brazil, Colombia and Ecuador")["member_recall"] == 1.0


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
    *("contained", "recall", "last_word", "new_recall", "head_recall", "modifier_recall", "name_recall"),
    *("member_recall", "spelling_least", "spelling_begin"),
)
COUNTS = {
    *("values_beside", "refusals", "alternatives", "stances", "new_words", "new_beside", "members_beside"),
}
words = st.text(st.characters(codec="utf-8"), max_size=40).filter(lambda text: bool(text.strip()))


@given(words, words.filter(lambda text: any(map(str.isalnum, text))), words)
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
        if feature.name not in COUNTS and not math.isnan(value):
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


@pytest.mark.parametrize(
    ("prediction", "reference", "share", "conflict"),
    [
        ("two", "2", 1.0, 0.0),
        ("1,000 people", "one thousand", 1.0, 0.0),
        ("September 15, 1996", "15 September 1996", 1.0, 0.0),
        ("October 15, 1996", "September 15, 1996", 0.0, 1.0),
        ("4", "2", 0.0, 1.0),
        ("nobody knows", "September 15, 1996", 0.0, 0.0),
    ],
)
def test_values_are_found_contradicted_or_missing(
    prediction: str, reference: str, share: float, conflict: float
) -> None:
    found = of(prediction, reference)
    assert (found["value_recall"], found["value_conflict"]) == (share, conflict)


def test_without_values_in_references_nothing_is_said_of_them() -> None:
    found = of("a cat 7", "a cat")
    assert all(math.isnan(found[name]) for name in ("value_recall", "value_conflict", "values_beside"))


def test_the_reference_whose_values_fit_is_the_one_that_features_come_from() -> None:
    """SMILE's best one says 1979; the answer says what the other one does."""
    found = of("in May 1980", "June 1979", "May 1980", best=0)
    assert (found["value_recall"], found["value_conflict"], found["new_recall"]) == (1.0, 0.0, 1.0)


def test_smiles_best_reference_stays_where_no_value_fits_better() -> None:
    found = of("in the spring of some year", "spring 1979", "May 1980", best=0)
    assert found["new_recall"] == 0.5


def test_a_value_of_the_question_contradicts_nothing() -> None:
    found = of("In 2017 there were 5", "5", question="How many in 2017?")
    assert (found["value_recall"], found["value_conflict"], found["values_beside"]) == (1.0, 0.0, 0.0)


NOTHING = SmileParts(0.0, 0.0, 0.0, 0.0, "", 0, correct=False)


def told(question: str = "", prediction: str = "red", *references: str) -> dict[str, float]:
    item = Item("1", question, references or ("dog",), prediction)
    found = input_kind(CorrectnessInputs(item, truncated=False, best=0, smile=0.0, terms=NOTHING))
    return dict(zip(INPUT_KIND, found.tolist(), strict=True))


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("Who wrote Hamlet?", "asks_who"),
        ("the man who wrote it was born when", "asks_who"),
        ("In what year was it?", "asks_when"),
        ("when did it end", "asks_when"),
        ("Where is it?", "asks_where"),
        ("which city is it in", "asks_where"),
        ("How many moons?", "asks_amount"),
        ("Why is the sky blue?", "asks_why"),
        ("How does a pump work?", "asks_why"),
        ("What is it?", "asks_what"),
        ("Is it raining, and what then?", "asks_yes_no"),
        ("Name a river.", ""),
        ("The whole thing", ""),  # neither "who" nor "how" is a word of it
        ("", ""),
    ],
)
def test_a_question_is_of_one_kind_at_most(question: str, kind: str) -> None:
    found = told(question)
    assert [name for name in INPUT_KIND if name.startswith("asks_") and found[name]] == [kind] * bool(kind)
    assert found["no_question"] == float(not question)


def test_lengths_are_logarithms_and_shares_are_of_the_best_reference() -> None:
    found = told("How many?", "one two three", "12 of the 40")
    assert found["question_words"] == pytest.approx(math.log(3))
    assert found["answer_words"] == pytest.approx(math.log(4))
    assert found["reference_words"] == pytest.approx(math.log(5))
    assert (found["reference_digits"], found["reference_plain"]) == (0.5, 0.5)
    assert told("", "red", "Yes, it is.")["reference_verdict"] == 1
    assert told("", "red", "yesterday")["reference_verdict"] == 0


@given(st.text(max_size=60), st.text(min_size=1, max_size=60).filter(lambda text: text.strip().isalnum()))
def test_they_are_finite_and_bounded_whatever_the_texts(question: str, prediction: str) -> None:
    found = np.array(list(told(question, prediction).values()))
    assert np.isfinite(found).all()
    assert ((found >= 0) & (found <= 10)).all()
