"""Letters of choices and what they stand for."""

from typing import Any

import pytest

from gradewire.cli.input.official.choices import choice_texts, letter_place, option_named, options_in


@pytest.mark.parametrize(
    ("text", "place"),
    [("B", 1), ("(B)", 1), ("C.", 2), (" A: ", 0), ("b", None), ("AB", None), ("A cat", None), ("", None)],
)
def test_a_letter_by_itself_names_a_choice(text: str, place: int | None) -> None:
    assert letter_place(text) == place


@pytest.mark.parametrize(
    ("choices", "expected"),
    [
        (["pear", "brick"], ["pear", "brick"]),
        ({"text": ["pear", "brick"], "label": ["A", "B"]}, ["pear", "brick"]),
        (["pear"], ["A", "B"]),
        (None, ["A", "B"]),
    ],
)
def test_letters_that_were_offered_become_the_documents_texts(choices: Any, expected: list[str]) -> None:
    assert choice_texts(["A", "B"], choices) == expected
    assert choice_texts(["oak", "iron"], choices) == ["oak", "iron"]


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("Which?\nA. pear\nB. brick\nAnswer:", ["pear", "brick"]),
        ("Q1\nA. one\nB. two\nAnswer: A\n\nQ2\nA. pear\nB. brick\nAnswer:", ["pear", "brick"]),
        ("Which?\nA. pear\nB. brick\nC. wool\nAnswer:", ["A", "B"]),
        ("Which?", ["A", "B"]),
    ],
)
def test_letters_of_a_document_without_choices_become_the_texts_that_the_prompt_lists(
    prompt: str, expected: list[str]
) -> None:
    """MedQA's documents have ending0 to ending3."""
    assert choice_texts(["A", "B"], None, prompt) == expected
    assert choice_texts(["pear", "brick"], None, "A. one\nB. two") == ["pear", "brick"]


@pytest.mark.parametrize(
    ("prompt", "options"),
    [
        ("Which?\nA. red\nB. dark blue\nAnswer:", ["red", "dark blue"]),
        ("Which?\n(A) red\n(B) blue\n", ["red", "blue"]),
        ("Q\nA. x\nB. y\n\nQ\nA. red\nB. blue\nC. green", ["red", "blue", "green"]),
        ("A. Lincoln was who?", []),
        ("B. red\nC. blue", []),
        ("", []),
    ],
)
def test_options_of_a_prompt(prompt: str, options: list[str]) -> None:
    assert options_in(prompt) == options


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("B", "blue"),
        ("(A)", "red"),
        ("B. blue", "blue"),
        ("B. red", "B. red"),
        ("Z", "Z"),
        ("blue", "blue"),
        ("b", "blue"),
        ("(a)", "red"),
    ],
)
def test_answers_name_options_by_letter_or_by_both(answer: str, expected: str) -> None:
    assert option_named(answer, ["red", "blue"]) == expected


def test_a_small_letter_that_is_an_option_itself_is_that_option() -> None:
    assert option_named("a", ["b", "a"]) == "a"
