"""Options are found in the layouts that people use, and not in questions that only look like lists."""

from string import ascii_uppercase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_server.metrics.choices.options import find_letters, find_options

PETS = ("cat", "dog", "hen")


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("Which? A) cat B) dog C) hen", "upper"),
        ("Which?\nA. cat\nB. dog\nC. hen", "upper"),
        ("Which? (A) cat (B) dog (C) hen", "upper"),
        ("Which? [A] cat [B] dog [C] hen", "upper"),
        ("Which?\nOptions:\nA: cat\nB: dog\nC: hen", "upper"),
        ("Which? a) cat / b) dog / c) hen", "lower"),
        ("Which is it: A) cat, B) dog or C) hen?", "upper"),
        ("Which?\n- A. cat\n- B. dog\n- C. hen", "upper"),
        ("Which?\n**A)** cat  **B)** dog  **C)** hen", "upper"),
        ("| Letter | Pet |\n|---|---|\n| A | cat |\n| B | dog |\n| C | hen |", "upper"),
        ("A/ cat B/ dog C/ hen. Which barks?", "upper"),
        ("Pick one (a=cat, b=dog, c=hen): which barks?", "lower"),
        ("{A} cat {B} dog {C} hen\nWhich barks?", "upper"),
        ("Which?\nA the cat\nB the dog\nC the hen", "upper"),
        ('Which? {"A": "cat", "B": "dog", "C": "hen"}', "upper"),
        ("哪个？A、cat B、dog C、hen", "upper"),
        ("哪个？（A）cat（B）dog（C）hen", "upper"),
        ("Which? (1) cat (2) dog (3) hen", "number"),
        ("Which?\n1. cat\n2. dog\n3. hen", "number"),
        ("Which? ① cat ② dog ③ hen", "number"),
        ("Question: x\nA. one\nB. two\n\nAnswer: A\n\nQuestion: y\nA. cat\nB. dog\nC. hen\nAnswer:", "upper"),
        ("Which statements hold?\n1. x\n2. y\nA. cat\nB. dog\nC. hen", "upper"),
    ],
)
def test_options_are_found_in_a_question(question: str, kind: str) -> None:
    found = find_options(question)
    assert found is not None
    assert (tuple(text.removeprefix("the ") for text in found.texts), found.kind) == (PETS, kind)


@pytest.mark.parametrize(
    "question",
    [
        "What is (a) the force and (b) the acceleration?",
        "(a) Find the mass. (b) Calculate the speed.",
        "(a) What is X? (b) What is Y?",
        "Who wrote more, J. A. Smith or A. B. Yehoshua?",
        "Did A. Lincoln meet B. Franklin?",
        "Which foods have fat (including vitamin A) or B) salt?",
        "f(1) = 3 and f(2) = 5; what is f(3)?",
        "How many of these are right? 1. All cats can fly. 2. All dogs can swim. 3. All hens can sing.",
        "Points: A (1,2) B (2,3) C (3,4). What is the area?",
        "Let A = 3 and B = 4. What is A + B?",
        "Compare vitamin A, vitamin B and vitamin C.",
        "A: How are you? B: Fine. What did B say?",
        "In 1999 and 2000, who won?",
        "",
    ],
)
def test_ordinary_questions_have_no_options(question: str) -> None:
    assert find_options(question) is None


def test_given_texts_count_before_the_question_and_lose_labels_of_their_own() -> None:
    found = find_options("Which? A) x B) y C) z", ("A) cat", "B) dog", "C) hen"))
    assert found is not None
    assert (found.texts, found.labels, found.stem) == (PETS, ("A", "B", "C"), "Which?")


def test_given_letters_get_their_texts_from_the_question() -> None:
    found = find_options("Which? A) cat B) dog C) hen", ("A", "B", "C"))
    assert found is not None
    assert found.texts == PETS


@pytest.mark.parametrize(
    ("question", "count"), [("Pick one of A to D.", 4), ("Choose A, B or C.", 3), ("Which option?", 26)]
)
def test_letters_without_texts(question: str, count: int) -> None:
    found = find_letters(question)
    assert found is not None
    assert (len(found.texts), found.are_known) == (count, False)
    assert find_letters("What is the highest peak?") is None


@given(st.lists(st.from_regex(r"[a-z]{3,9}", fullmatch=True), min_size=2, max_size=26, unique=True))
def test_as_many_options_as_there_are_letters(texts: list[str]) -> None:
    question = "Which?\n" + "\n".join(f"{letter}. {text}" for letter, text in zip(ascii_uppercase, texts, strict=False))
    found = find_options(question)
    assert found is not None
    assert found.texts == tuple(texts)


@given(st.text(max_size=400) | st.text("AaBb12().:\n、 -|*", max_size=400))
def test_no_question_raises(question: str) -> None:
    found = find_options(question)
    assert found is None or 2 <= len(found.texts) <= 26
