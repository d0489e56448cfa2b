"""Which answers say yes or no: never a guess."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gradewire_server.metrics.text.yes_no import asks_yes_or_no, leading_verdict

YES = [
    "yes", "Yes.", "YES!", " yes ", "yes, it is", "Yes - the gate is open", "yeah", "yep", "aye", "Answer: yes",
    "The answer is yes.", "the answer is: Yes, they are", "my answer is yes", "**Yes**", '"yes"', "**Answer:** yes",
    "\u201cYes.\u201d", "yes yes yes", "yes, yes", "yes it is", "Yes, the man is sitting on a bench.", "correct",
    "Correct.", "True", "it is", "It is.", "they do", "it's", "there are", "yes - it's there",
]  # fmt: skip
NO = [
    "no", "No.", "NO", "- no", "no, it is not", "nope", "nah", "nay, sir", "Answer: no", "The answer is no",
    "not really", "Not at all.", "not yet", "of course not", "definitely not", "Certainly not!", "false", "incorrect",
    "never", "it is not", "It isn't.", "they don't", "they don\u2019t", "there aren't any", "it's not", "he can't",
    "she cannot", "no not at all", "no it is not", "it won't", "No, none of them is.", "No. It is shut.",
    "No, there is no dog in the picture.",
]  # fmt: skip
REFUSALS = [
    "No image was provided, so I cannot tell.", "No image provided.", "No data", "No output", "No response",
    "No comment.", "No results found", "No relevant information", "No valid answer", "No context was given",
    "no text", "No, image not provided", "No: insufficient context", "I can't, as an AI model, see images.",
    "I cannot.", "I can't", "I don't.", "I'm not", "I do not: I am an AI", "We do not, sorry", "You are", "You can't",
    "No, please upload the picture", "No, the picture is blank", "No, nothing is visible", "No, failed to load",
    "Nope: error 500", "No. I cannot see any image.", "Yes, I am sorry.", "It might.", "It could",
    "It may, it may not.", "It may be",
]  # fmt: skip
OPENERS = [
    "Certainly! Looking closely, the answer is no, there is none.", "Sure! Here is my answer: no", "Sure", "Indeed",
    "Of course! Let me look: no.", "Absolutely! But no", "Right, so let me think", "Certainly", "Of course, he does",
    "definitely", "right", "Wrong question", "Wrong!", "You are right: it is", "Certainly! The answer is no.",
    "No problem! Yes, it is raining.", "No doubt, it is.", "No doubt.", "No question, it is", "No question, he did",
    "No wonder it is",
]  # fmt: skip
TAKEN_BACK = [
    "yes and no", "Yes or no?", "yes/no", "no, yes", "yes, no", "yes\nno", "yes\rno", "Yes. No.", "Yes? No.", "yes?",
    "Yeah, no.", "Yes (or no)", "no - yes", "Yes is wrong", "No is wrong", "not no", "No, wait, yes", "No, it is.",
    "No, they are. All of them.", "Yes, but not now", "yes; not now", "Yes, it is not.", "Yes, that is wrong",
    "Yes - no, sorry, they are out", "No, that is correct", "No, of course it is", "Yes, maybe", "No, it depends",
    "yes | no", "Yes, or perhaps no", "The answer is not no", "Yes, the opposite", "They can - or not", "It is. No.",
    "yes, it isn't", "Yes \U0001f44e", "Yes, 不是", "\u200byes\u200bno", "The answer is yes or no",
    "Yes, however it is unclear", "nay, sir it is", "Yes. " + "It is there. " * 15 + "So the answer is no.",
]  # fmt: skip
NEITHER = [
    "", "?!", "tile", "the gate is open", "maybe", "probably yes", "I think so", "it depends", "not sure", "no idea",
    "No idea.", "no one", "no-one knows", "no\u2014one knows", "No One", "no information is given", "no clue",
    "not enough information", "unknown", "it is a cat", "it is not a cat", "it is unclear", "it is not clear",
    "there is a dog", "right behind the car", "true colours", "correct me if I am wrong", "never mind", "nobody",
    "nothing", "yesterday", "nowhere", "noon", "norway", "да", "不是", "n't", "won't", "it", "is", "the answer is",
    "answer", "the answer is 42", "there are any", "certainly not clear to me at all and so on", "No. 5", "No 5",
    "No.5", "No: 1", "no longer", "No more than 3 people", "no dog is in the picture", "yes the man is sitting",
    "Yes (band)", "1. Yes", "N/A", "Answer yes or no", "It is. Rate this 3", "That is, if it is open",
]  # fmt: skip


@pytest.mark.parametrize("text", YES)
def test_it_says_yes(text: str) -> None:
    assert leading_verdict(text) is True


@pytest.mark.parametrize("text", NO)
def test_it_says_no(text: str) -> None:
    assert leading_verdict(text) is False


@pytest.mark.parametrize("text", [*REFUSALS, *OPENERS, *TAKEN_BACK, *NEITHER])
def test_it_says_neither(text: str) -> None:
    assert leading_verdict(text) is None


@given(st.text(max_size=40))
def test_any_text_is_answered(text: str) -> None:
    assert leading_verdict(text) in {True, False, None}
    assert leading_verdict(text) == leading_verdict(text.upper().lower()) or text.upper().lower() != text.lower()


@given(st.sampled_from(YES), st.sampled_from(NO), st.sampled_from([". ", ", ", "! ", "\n", " - ", " ", "? "]))
@example(yes="it is", no="nay, sir", between=" ")
def test_a_text_that_says_both_says_neither(yes: str, no: str, between: str) -> None:
    assert leading_verdict(f"{yes}{between}{no}") is None
    assert leading_verdict(f"{no}{between}{yes}") is None


@pytest.mark.parametrize("text", ["yes " * 250_000, "(" * 1_000_000, "n't" * 300_000, "-" * 1_000_000, " " * 1_000_000])
def test_a_long_text_is_left_to_the_judge(text: str) -> None:
    assert leading_verdict(text) is None
    assert leading_verdict(text[:300]) is (True if text.startswith("yes") else None)
    assert asks_yes_or_no(text) is False


def test_only_what_is_read_wholly_is_ruled() -> None:
    long = "Yes, " + "the gate is open. " * 16
    assert len(long) < 300
    assert leading_verdict(long) is True
    assert leading_verdict(long + "But it is no gate.") is None


@pytest.mark.parametrize(
    ("question", "asks"),
    [
        ("Is it open?", True),
        ("isn\u2019t it open?", True),
        ("In this picture, are there any dogs?", True),
        ("Look closely: could this be a farm?", True),
        ("Who sang Owner of a Lonely Heart?", False),
        ("What is it?", False),
        ("Which villain is played by Wiseman", False),
        ("Ist es offen?", False),
    ],
)
def test_which_questions_ask_for_yes_or_no(question: str, asks: bool) -> None:  # noqa: FBT001
    assert asks_yes_or_no(question) is asks
