"""Words that are an answer because the question offers them, or because the reference is their opposite."""

import pytest

from gradewire_server.metrics.judged.choices import words_of_choice


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("Left or right?", {"left", "right"}),
        ("TRUE/FALSE: it rains", {"true", "false"}),
        ("Is it true, false, or unknown?", {"true", "false", "unknown"}),
        ("Is it a fact or an opinion?", {"fact", "opinion"}),
        ("Which side, the left, the right, or the middle?", {"left", "right", "middle"}),
    ],
)
def test_what_a_question_offers_is_a_choice(question: str, words: set[str]) -> None:
    assert words <= words_of_choice(question, ("Ada",))


def test_a_question_that_offers_nothing_gives_none() -> None:
    assert words_of_choice("Who was right, and which answer is correct?", ("Ada",)) == set()
    assert words_of_choice("Which answer is correct, A or B?", ()) == {"a", "b"}
    assert words_of_choice("", ()) == set()


def test_the_opposite_of_a_short_reference_is_a_choice() -> None:
    assert words_of_choice("", ("False.",)) == {"true"}
    assert words_of_choice("", ("it is the right",)) == {"left", "wrong"}
    assert words_of_choice("", ("He left the house at noon",)) == set()


@pytest.mark.timeout(30)
@pytest.mark.parametrize("piece", ["a, ", "a or ", "or/", "the ", "x/"])
def test_a_long_question_is_no_trouble(piece: str) -> None:
    # Quadratic work on this takes minutes: the time limit only ends a test that hangs.
    assert words_of_choice(piece * (200_000 // len(piece)), ()) <= {"a", "or", "the", "x"}
