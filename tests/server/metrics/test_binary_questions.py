"""Yes/no questions by rule: never a guess."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_server.metrics.binary_questions import is_binary, leading_verdict, majority, rule_verdict
from gradewire_server.metrics.reference_filter import count_references

YES = [
    "yes", "Yes.", "YES!", " yes ", "yes, it is", "Yes - the gate is open", "yes the man is sitting", "yeah", "yep",
    "yup sure", "aye", "Answer: yes", "The answer is yes.", "the answer is: Yes, they are", "my answer is yes",
    "**Yes**", '"yes"', "yes; not now", "correct", "Correct.", "True", "definitely", "Absolutely!", "of course",
    "Of course, he does", "certainly, why not", "it is", "It is.", "they do", "it's", "there are",
    "He does, on the left", "yes and it is big", "yes they are not far",
]  # fmt: skip
NO = [
    "no", "No.", "NO", "no, it is not", "No there is no dog", "no dog is in the picture", "nope", "nah", "nay, sir",
    "Answer: no", "The answer is no", "not really", "Not at all.", "not yet", "of course not", "definitely not",
    "Certainly not!", "false", "incorrect", "never", "it is not", "It isn't.", "they don't", "they don\u2019t",
    "there aren't any", "it's not", "he can't", "she cannot", "I'm not", "it is not, because it is closed",
    "no not at all", "it won't",
]  # fmt: skip
NEITHER = [
    "", "?!", "tile", "the gate is open", "maybe", "probably yes", "I think so", "it depends", "not sure", "no idea",
    "No idea.", "no one", "no information is given", "no clue", "yes and no", "Yes or no?", "yes/no", "no, yes",
    "yes, no", "yes\nno", "not enough information", "unknown", "it is a cat", "it is not a cat", "it is unclear",
    "it is not clear", "there is a dog", "right behind the car", "true colours", "correct me if I am wrong",
    "never mind", "nobody", "nothing", "yesterday", "nowhere", "noon", "norway", "да", "不是", "n't", "won't", "it",
    "is", "the answer is", "answer", "the answer is 42", "there are any",
    "certainly not clear to me at all and so on",
]  # fmt: skip


@pytest.mark.parametrize("text", YES)
def test_it_says_yes(text: str) -> None:
    assert leading_verdict(text) is True


@pytest.mark.parametrize("text", NO)
def test_it_says_no(text: str) -> None:
    assert leading_verdict(text) is False


@pytest.mark.parametrize("text", NEITHER)
def test_it_says_neither(text: str) -> None:
    assert leading_verdict(text) is None


@given(st.text(max_size=40))
def test_any_text_is_answered(text: str) -> None:
    assert leading_verdict(text) in {True, False, None}
    assert leading_verdict(text) == leading_verdict(text.upper().lower()) or text.upper().lower() != text.lower()


@pytest.mark.parametrize("text", ["yes " * 250_000, "(" * 1_000_000, "n't" * 300_000, "-" * 1_000_000])
def test_a_long_text_takes_no_longer(text: str) -> None:
    assert leading_verdict(text) is (True if text.startswith("yes") else None)


@pytest.mark.parametrize(
    ("references", "binary", "most"),
    [
        (("yes",), True, True),
        (("No.", "no", "YES"), True, False),
        (("yes", "no"), True, None),
        (("no", "no", "yes", "yes, it is"), True, None),
        (("no", "nope", "yes"), True, False),
        (("yes", "yes", "wood"), True, True),
        (("wood", "wood", "yes"), False, True),
        (("wood",), False, None),
        (("yes, it is",), False, True),
        (("yes", "wood", "wood", "yes", "no"), True, True),
    ],
)
def test_the_majority_of_references(references: tuple[str, ...], binary: bool, most: bool | None) -> None:  # noqa: FBT001
    assert is_binary(count_references(references)) is binary
    assert majority(references) is most


@pytest.mark.parametrize(
    ("references", "prediction", "right"),
    [
        (("yes", "yes", "no"), "Yes, it is.", True),
        (("yes", "yes", "no"), "no", False),
        (("no", "no", "yes"), "there isn't any", True),
        (("no",), "tile", None),
        (("yes", "no"), "yes", None),
        (("wood", "yes"), "yes", None),
    ],
)
def test_the_rule(references: tuple[str, ...], prediction: str, right: bool | None) -> None:  # noqa: FBT001
    assert rule_verdict(references, prediction) is right
