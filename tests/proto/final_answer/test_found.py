"""The last steps from a span to an answer."""

import pytest

from gradewire_proto.final_answer import find_final_answer
from gradewire_proto.final_answer.found import Found, asserted, bold_in, finish, joined, moved


def text_of(original: str, found: Found | None) -> str | None:
    return None if found is None else found.text or original[found.left : found.right]


@pytest.mark.parametrize(
    ("original", "answer"),
    [
        ("a cat**.", "a cat"),
        ("**a cat**", "a cat"),
        ("(C) 15", "C"),
        ("Paris)", "Paris"),
        ("f(x)", "f(x)"),
        ("Oslo!", "Oslo"),
        ("富士山です。", "富士山"),
        ("“a set”", "a set"),
    ],
)
def test_marks_around_an_answer_are_left_out(original: str, answer: str) -> None:
    assert text_of(original, finish(original, 0, len(original), "phrase")) == answer


@pytest.mark.parametrize("completion", ["The answer is **a cat**.", "The answer is not a dog but __a cat__."])
def test_emphasis_before_a_full_stop_is_left_out(completion: str) -> None:
    found = find_final_answer(completion)
    assert found.text == "a cat"
    assert found.start is not None
    assert completion[found.start : found.end] == "a cat"


@pytest.mark.parametrize(
    ("original", "answer"),
    [
        ("it is **12** of them", "12"),
        ("it is **a cat**", "a cat"),
        ("**a cat** sleeps", None),
        ("**one** or **two**", None),
        ("**Answer:**", None),
    ],
)
def test_bold_text_counts_if_it_is_alone_at_the_end_or_a_number(original: str, answer: str | None) -> None:
    span = bold_in(original, 0, len(original))
    assert (None if span is None else original[slice(*span)]) == answer


def test_a_letter_at_the_end_counts_if_letters_stand_before() -> None:
    original = "I would say A. It fits only C."
    assert text_of(original, asserted(original, original, 15, len(original))) == "C"
    original = "I would say iron. It is vitamin C."
    assert text_of(original, asserted(original, original, 18, len(original))) == "vitamin C"


def test_a_list_is_joined_and_moved() -> None:
    found = joined("- red\n- **blue**", [(2, 5), (8, 16)], "whole")
    assert found == Found(2, 16, "whole", "red, blue")
    assert moved(found, 10) == Found(12, 26, "whole", "red, blue")


@pytest.mark.parametrize(
    "interval",
    [
        *("[0, 1)", "(2, 5]", "[0, 1]", "(0, 1)", "(-∞, 3]", "[0, ∞)", "]0, 1[", "[2;5[", "]2;5]", "[2; 5)", "[a, b)"),
        *("[1/2, 3/4)", "(0, 1] ∪ [2, 3)", "x ∈ [0, 1)"),
    ],
)
@pytest.mark.parametrize(
    "completion",
    [
        *("{}", "Answer: {}", "The answer is {}.", "\\boxed{{{}}}", "<answer>{}</answer>", "**{}**", "Answer: ${}$"),
        *('{{"answer": "{}"}}', "Final answer: `{}`", "Answer: {} because it is continuous there", "Antwort: {}"),
        *("Réponse : {}", "Respuesta: {}", "The answer is {}, since it is half-open.", "答案：{}", "Answer:\n{}"),
    ],
)
def test_the_brackets_of_an_interval_stay(interval: str, completion: str) -> None:
    assert find_final_answer(completion.format(interval)).text == interval


@pytest.mark.parametrize(
    ("completion", "answer"),
    [("Answer: 12)", "12"), ("Answer: f(x, y)", "f(x, y)"), ("Answer: Paris (as we all know, of course)", "Paris")],
)
def test_an_open_bracket_around_an_answer_is_left_out(completion: str, answer: str) -> None:
    assert find_final_answer(completion).text == answer
