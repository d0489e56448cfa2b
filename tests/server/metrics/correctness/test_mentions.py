"""Tests of mentions: each stance, answers that state the reference, new words, and lists."""

import math
from typing import Final

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import example_count

from gradewire_server.metrics.correctness.features import FEATURES
from gradewire_server.metrics.correctness.focus import Focus
from gradewire_server.metrics.correctness.mentions import STANCES, mention_features
from gradewire_server.metrics.correctness.words import FeatureText

ASKED: Final = "Which city is the capital?"
LEAD: Final = (
    "Thanks for asking. I had a look at the information and compared it with what I know about the subject, so that "
    "the reply is as useful as it can be for somebody who reads about it for the first time."
)
DOUBTS: Final = frozenset(feature.name for feature in FEATURES if feature.doubts)


def mentioned(claim: str, *references: str, question: str = ASKED) -> dict[str, float]:
    texts = [FeatureText.of(reference) for reference in references or ("Canberra",)]
    asked, said = FeatureText.of(question), FeatureText.of(claim)
    return mention_features(asked, texts, said, Focus.of(asked, texts, said))


def stances(claim: str, *references: str, question: str = ASKED) -> set[str]:
    found = mentioned(claim, *references, question=question)
    named = {name for name in STANCES if found[name] == 1}
    assert found["stances"] == len(named)
    return named


@pytest.mark.parametrize(
    ("stance", "claims"),
    [
        (
            "retracted",
            [
                *("Canberra, no wait, Sydney", "Canberra -> Sydney", "Canberra \u2013 correction: Sydney"),
                *("Canberra, ich meine Sydney", "Canberra, pardon, Sydney", "Canberra, espera, Sydney"),
                "Canberra\uff0c不对\uff0c是悉尼",
            ],
        ),
        ("questioned", ["Canberra? It's Sydney", "Is it Canberra?", "«Canberra»? Sydney", "Canberra\uff1f悉尼"]),
        (
            "contrasted",
            [
                *("Unlike Canberra, it is Sydney", "Sydney rather than Canberra", "At first glance Canberra"),
                *("Most people think it is Canberra", "A common wrong answer is Canberra"),
                *("Canberra is just a decoy", "Canberra isn't it", "Canberra, but really Sydney"),
                *("Sydney statt Canberra", "Außer Canberra alle", "Sydney plutôt que Canberra"),
                "Sydney en lugar de Canberra",
            ],
        ),
        (
            "related",
            [
                *("north of Canberra", "older than Canberra", "halfway between Canberra and Sydney"),
                *("Canberra or later", "two days after Canberra", "größer als Canberra", "avant Canberra"),
                "antes de Canberra",
            ],
        ),
        ("reported", ["Some say Canberra", "The guide says Canberra"]),
        ("quoted", ["the so-called Canberra", "Hotel Canberra", "the Canberra School"]),
        (
            "rejected",
            [
                "not Canberra",
                "It can't be Canberra",
                "neither Canberra nor Sydney",
                "nicht Canberra",
                "jamais Canberra",
            ],
        ),
        (
            "restricted",
            ["Canberra only if it rains", "Canberra for adults, otherwise Sydney", "Canberra, nur wenn es regnet"],
        ),
        (
            "conditional",
            ["Canberra if it rains", "Canberra, provided that it is true", "Canberra, wenn es regnet", "only Canberra"],
        ),
        (
            "hedged",
            ["maybe Canberra", "Canberra, I guess", "vielleicht Canberra", "peut-être Canberra", "quizás Canberra"],
        ),
    ],
)
def test_a_stance(stance: str, claims: list[str]) -> None:
    assert [claim for claim in claims if stance not in stances(claim)] == []


@pytest.mark.parametrize(
    ("stance", "claim"),
    [("related", "大于堪培拉"), ("rejected", "不是堪培拉"), ("hedged", "可能是堪培拉"), ("questioned", "堪培拉?")],
)
def test_a_stance_without_blanks(stance: str, claim: str) -> None:
    assert stance in stances(claim, "堪培拉")


@pytest.mark.parametrize(
    "claim",
    [
        *("Canberra", "It is Canberra.", "in Canberra", "the city of Canberra", "Canberra!", "Es ist Canberra."),
        *("Canberra rather than Sydney", "Canberra, unlike Sydney, is the capital", "Canberra, not Sydney"),
        *("Wait, it is Canberra", "Which city? Canberra", "No doubt Canberra", "Canberra, I'm sure"),
        "Canberra, though I'm not sure how people stress it",
        *(
            "Canberra is the largest city",
            "Canberra was the first capital",
            "Canberra, a popular place, is the capital",
        ),
        *("Canberra in May", "First Canberra was founded", "Canberra has schools", "C'est Canberra", "Es Canberra"),
        # Of two mentions the plainer one counts.
        "It is Canberra. Unlike Canberra, Sydney is big.",
        # Nothing follows what would take it back.
        "Canberra, no wait",
    ],
)
def test_an_answer_that_states_the_reference(claim: str) -> None:
    assert stances(claim) == set()


def test_a_phrase_of_the_question_or_a_reference_is_not_the_answers() -> None:
    assert stances("Maybe Canberra", "maybe Canberra") == set()
    assert stances("Canberra if it rains", question="Which city, if it rains?") == set()
    assert stances("Canberra if it rains") == {"conditional"}


@pytest.mark.parametrize(
    ("claim", "reference"),
    [("It was Hinault or LeMond", "Hinault"), ("It was LeMond or Hinault.", "Hinault"), ("38,000 or 48,000", "38,000")],
)
def test_one_of_two_is_no_choice(claim: str, reference: str) -> None:
    assert "hedged" in stances(claim, reference)


@pytest.mark.parametrize(
    ("claim", "references"),
    [
        ("a loop or self-loop", ("loop",)),
        ("Hinault or whoever", ("Hinault",)),
        ("Myanmar or Burma", ("Myanmar", "Burma")),
        ("5 or so", ("5",)),
    ],
)
def test_two_names_of_one_thing_are_no_two_candidates(claim: str, references: tuple[str, ...]) -> None:
    assert "hedged" not in stances(claim, *references)


def test_not_only_rejects_nothing() -> None:
    assert "rejected" not in stances("not only Canberra")
    assert "rejected" not in stances("none other than Canberra")


def test_a_claim_without_the_reference_has_no_stance() -> None:
    found = mentioned("It is Sydney, or so they say")
    assert all(math.isnan(found[name]) for name in (*STANCES, "stances", "new_beside"))


@pytest.mark.parametrize("stance", ["questioned", "contrasted", "related", "rejected", "hedged"])
def test_a_stance_in_a_long_answer(stance: str) -> None:
    claims = {
        "questioned": "Canberra? No, it is Sydney.",
        "contrasted": "Unlike Canberra, Sydney is the capital.",
        "related": "It lies a day's drive south of Canberra.",
        "rejected": "It is not Canberra.",
        "hedged": "Maybe it is Canberra.",
    }
    for text in (f"{LEAD} {claims[stance]}", f"{claims[stance]} {LEAD}"):
        assert stance in stances(text)
        assert stances(text) <= {stance, "conditional"}


def test_a_long_answer_that_states_the_reference() -> None:
    assert stances(f"{LEAD} The capital is Canberra. It was founded in 1913.") == set()


@pytest.mark.parametrize(
    "claim",
    [
        "Canberra is the seat of the parliament. The capital, I have to admit, is Sydney, not Canberra.",
        "It is Canberra. Looking again, forget Canberra: it is Sydney.",
        "Canberra it is. Vergessen Sie Canberra, es ist Sydney.",
    ],
)
def test_a_denial_of_the_last_mention_takes_the_others_back(claim: str) -> None:
    assert "retracted" in stances(claim)


def test_a_mention_inside_a_longer_one_is_none_of_its_own() -> None:
    """Without the longer mention, "6" behind "ward" would be stated plainly."""
    assert "related" in stances("One floor above ward 6", "ward 6", "6")
    assert stances("It is in ward 6", "ward 6", "6") == set()


def test_a_bound_that_the_question_asks_for_is_no_relation() -> None:
    assert stances("at least 18", "18", question="How old must you be to vote?") == {"conditional"}
    assert "related" in stances("at least 18", "18", question="How old is she?")


def test_a_cue_of_the_question_is_no_stance() -> None:
    assert stances("Copper is not magnetic", "copper", question="Which metal is not magnetic?") == set()
    assert "contrasted" in stances("Copper is not magnetic", "copper", question="Which metal is magnetic?")


def test_new_words_are_neither_the_questions_nor_the_references() -> None:
    """Three words count: "city", "sydney" and "river". Two of them are new, and one is in the mention's sentence."""
    found = mentioned("The city Canberra is on the river. It has trees", question="Which city?")
    assert found["new_words"] == pytest.approx(math.log(3))
    assert found["new_share"] == pytest.approx(2 / 4)
    assert found["new_beside"] == 1
    assert mentioned("Canberra")["new_words"] == 0
    assert math.isnan(mentioned("it is")["new_share"])


@pytest.mark.parametrize(
    ("claim", "reference", "beside"),
    [
        ("Paris, Lyon", "Paris", 1),
        ("1) Lyon 2) Paris", "Paris", 1),
        ("A) Lyon B) Paris", "Paris", 1),
        ("LYON OR PARIS", "Paris", 1),
        ("法国、德国", "法国", 1),
        ("Fe und Cu", "Fe", 1),
        ("Brazil, Colombia and Peru", "Brazil, Colombia and Ecuador", 1),
        ("Peru; Chile; Brazil; Bolivia", "Brazil", 3),
        ("Brazil, Colombia and Ecuador", "Brazil, Colombia and Ecuador", 0),
        ("Ecuador, Colombia, Brazil", "Brazil, Colombia and Ecuador", 0),
        ("Paris, not Lyon and not Nice", "Paris", 0),  # clauses
        ("Paris, the capital", "Paris", 0),  # what the question says
        ("Lyon, Nice", "Paris", 0),  # nothing of the reference stands beside them
    ],
)
def test_members_that_no_reference_has(claim: str, reference: str, beside: float) -> None:
    assert mentioned(claim, reference)["members_beside"] == beside


def test_the_options_of_a_question_are_members_too() -> None:
    question = "Which is an antibiotic: ibuprofen, amoxicillin or loratadine?"
    assert mentioned("ibuprofen, amoxicillin or loratadine", "amoxicillin", question=question)["members_beside"] == 2


def test_several_right_answers_are_no_members_beside_each_other() -> None:
    assert mentioned("Lyon, Nice and Paris", "Lyon", "Nice", question="Name cities of France.")["members_beside"] == 0


@pytest.mark.parametrize(
    "claim",
    [
        *("Paris", "Paris is where the river flows through the old town, and so on", "Paris, I'd say", "1,350"),
        *("Paris, by the river", "Paris, France", "Paris, Texas", "Paris, not Lyon", "14 July, 1789"),
    ],
)
def test_what_is_no_list_has_no_members(claim: str) -> None:
    assert math.isnan(mentioned(claim, "Paris")["members_beside"])


@pytest.mark.parametrize(
    ("claim", "references", "missing"),
    [
        ("Brazil and Ecuador", ("Brazil, Colombia and Ecuador",), 1),
        ("Ecuador", ("Brazil, Colombia and Ecuador",), 1),
        ("Brazil, Colombia and Ecuador", ("Brazil, Colombia and Ecuador",), 0),
        ("They are Ecuador, Brazil, Colombia.", ("Brazil, Colombia and Ecuador",), 0),
        ("Peru", ("Brazil, Colombia and Ecuador",), 0),  # nothing of it
        ("Brazil", ("Brazil, Colombia and Ecuador", "Brazil"), 0),  # another reference has no list
        ("Yes.", ("Yes, he won",), 0),
        ("Agra", ("Agra, India",), 0),
        ("July 4", ("July 4, 1776",), 0),
        ("Robert Downey", ("Robert Downey, Jr.",), 0),
        ("red and white", ("red, dark green",), 1),
        ("red and green", ("red, dark green",), 0),  # a part of a member: too unclear
    ],
)
def test_members_of_the_reference_that_are_missing(claim: str, references: tuple[str, ...], missing: float) -> None:
    assert mentioned(claim, *references)["members_missing"] == missing


def test_which_features_doubt_an_answer() -> None:
    assert set(STANCES) & DOUBTS == {
        "retracted",
        "questioned",
        "contrasted",
        "related",
        "reported",
        "restricted",
        "hedged",
    }
    assert {"members_beside", "members_missing"} <= DOUBTS


PARTS: Final = st.sampled_from(
    [
        "Canberra",
        " not ",
        "? ",
        ", ",
        " and ",
        " unlike ",
        ". ",
        " -> ",
        "maybe ",
        "1) ",
        "'s",
        "是",
        " older than ",
        "\u2019",
    ]
)
TEXTS: Final = st.lists(PARTS | st.text(max_size=8), min_size=1, max_size=20).map("".join).filter(str.strip)


@settings(max_examples=example_count(200))
@given(TEXTS, st.lists(TEXTS | st.just("Canberra"), min_size=1, max_size=4), st.text(max_size=20))
def test_any_text_has_finite_features_or_none(claim: str, references: list[str], question: str) -> None:
    found = mentioned(claim, *references, question=question)
    values = np.array(list(found.values()))
    assert not np.isinf(values).any()
    assert (np.isnan(values) | (values >= 0)).all()
    named = [found[name] for name in STANCES]
    assert found["stances"] == sum(named) or (math.isnan(found["stances"]) and all(map(math.isnan, named)))


@pytest.mark.parametrize("part", ["Canberra", "not", "?!", ",", "(", "'", "unlikeCanberra", "\n", "是", "1)"])
def test_few_words_of_any_length_are_read_in_bounded_time(part: str) -> None:
    """Quadratic work on these would take minutes, and the suite would not end."""
    claim = " ".join([part * (16_384 // len(part) // 8)] * 8)
    assert not np.isinf(list(mentioned(claim, "Canberra", part * 100).values())).any()
