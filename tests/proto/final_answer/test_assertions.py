"""The answer within one sentence that asserts it."""

import pytest

from gradewire_proto.final_answer.assertions import asserted_answer, calculated, quantity


@pytest.mark.parametrize(
    ("sentence", "answer"),
    [
        ("so it is 500 grams", "500 grams"),
        ("The capital is Ankara", "Ankara"),
        ("I forgot the goalkeeper: 73", "73"),
        ("the question says mammal, which makes it the blue whale", "the blue whale"),
        ("so I'll stay with it: Venus", "Venus"),
        ("Sweden did.", "Sweden"),
        ("es handelt sich um Alabaster", "Alabaster"),
        ("It was painted by Claude Monet", "Claude Monet"),
        ("the tag was deleted", "the tag was deleted"),
        ("应该是宋朝", "宋朝"),
    ],
)
def test_the_answer_stands_after_subject_and_verb(sentence: str, answer: str) -> None:
    left, right = asserted_answer(sentence, 0, len(sentence))
    assert sentence[left:right] == answer


@pytest.mark.parametrize(
    ("sentence", "found"),
    [
        ("each gets 45 cents", "45 cents"),
        ("they have 21 marbles together.", "21 marbles"),
        ("32 remain.", "32"),
        ("es bleiben 55 Euro übrig.", "55 Euro"),
        ("on arrive à 12 h 30", "12 h 30"),
        ("每人分到4个苹果", "4个苹果"),
        ("3 of 4 are red", None),
        ("nobody came", None),
    ],
)
def test_a_quantity_ends_its_sentence_and_is_the_only_number(sentence: str, found: str | None) -> None:
    span = quantity(sentence, 0, len(sentence))
    assert (None if span is None else sentence[slice(*span)]) == found


def test_more_numbers_are_allowed_if_asked_for() -> None:
    assert quantity("after 9 weeks she has $45", 0, 25) is None
    assert quantity("after 9 weeks she has $45", 0, 25, most=2) == (22, 25)


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("6 * 7 = 42", "42"),
        ("150 km / 2 h = 75 km/h", "75 km/h"),
        ("x = 2 or x = -7", None),
        ("no calculation", None),
    ],
)
def test_a_calculation_ends_with_its_result(text: str, result: str | None) -> None:
    span = calculated(text, 0, len(text))
    assert (None if span is None else text[slice(*span)]) == result
