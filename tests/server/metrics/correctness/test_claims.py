"""Which part of an answer is its claim, and what the quick look at the text misses."""

import json
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import example_count

from gradewire_server.metrics.correctness import claims
from gradewire_server.metrics.correctness.claims import claim_of

PROSE: Final = " ".join(["The town lies on a hill above the river and has a market each week."] * 4)


@pytest.mark.parametrize(
    ("prediction", "claim"),
    [
        # A mark, whatever stands before it.
        ("We get x = 4, and so \\boxed{12}.", "12"),
        (f"{PROSE} So it is \\boxed{{12}}", "12"),
        (f"<answer>Paris</answer> {PROSE}", "Paris"),
        ('{"reason": "It is large", "answer": "Paris"}', "Paris"),
        # An announcement.
        (f"{PROSE} The answer is Paris.", "Paris"),
        ("Die Antwort lautet Wien.", "Wien."),
        ("La réponse est Paris.", "Paris."),
        ("La respuesta es Madrid.", "Madrid."),
        ("答案是北京", "北京"),
        # Corrections and rejections in short answers.
        ("Canberra? No, it is Sydney.", "Sydney"),
        ("Lyon — no wait, Paris", "Paris"),
        ("Not Lyon but Paris", "Paris"),
        ("Nicht Bonn, sondern Berlin", "Berlin"),
        ("Wien? Nein, Graz.", "Graz"),
        # Calculations and emphasis.
        ("3 + 4 = 7", "7"),
        ("It is **Paris**", "Paris"),
        ("Sure! The capital is Paris. Let me know if you need more.", "The capital is Paris"),
    ],
)
def test_the_claim_of_an_answer_that_says_more(prediction: str, claim: str) -> None:
    found = claim_of(prediction).text
    assert found == claim


@pytest.mark.parametrize(
    "prediction",
    [
        "Paris",
        "It is Paris.",
        "Paris, the capital of France",
        "No, Sydney",
        "because it was not cold",
        "Goethe wrote Faust, and Schiller directed the theatre.",
        "Der Nil fließt durch Kairo.",
        "東京です",
        PROSE,
        f"{PROSE} It is Paris, not Lyon.",
        # Twenty words and more: a correction in prose is about something else as often as not.
        f"{PROSE} No, wait, it was Lyon.",
    ],
)
def test_an_answer_that_is_its_claim(prediction: str) -> None:
    found = claim_of(prediction).text
    assert found == prediction


@pytest.mark.parametrize(
    ("prediction", "claim"),
    [
        ("<think>Rome, or Paris?</think>Paris", "Paris"),
        ("~~Paris~~ Rome", "Rome"),
        ("\\xout{Paris} Rome", "Rome"),
        ("Paris</s>", "Paris"),
    ],
)
def test_wrapping_is_no_part_of_what_an_answer_says(prediction: str, claim: str) -> None:
    found = claim_of(prediction).text
    assert found == claim


@pytest.mark.parametrize(
    "answer", ["It's the newton.", "The blue car has two.", "a car", "not Paris but Lyon", "42 because 6*7=42"]
)
def test_an_announcement_that_opens_the_text_changes_no_claim(answer: str) -> None:
    assert claim_of(f"The answer is {answer}").text == claim_of(answer).text


MARKS: Final = st.sampled_from(
    [
        *(
            "**",
            "? ",
            "No, ",
            " = ",
            "<answer>",
            "</answer>",
            "\\boxed{",
            "}",
            "#### ",
            "~~",
            '{"answer": ',
            "<think>",
            "\n",
        ),
        *("The answer is ", "答案是", "nicht ", "wait", "\u200b", " "),
    ]
)
TEXTS: Final = st.lists(MARKS | st.text(max_size=12), max_size=8).map("".join)


@settings(max_examples=example_count(300))
@given(TEXTS)
def test_a_claim_is_blank_only_for_a_blank_text(prediction: str) -> None:
    claim = claim_of(prediction).text
    assert bool(claim.strip()) is bool(prediction.strip())
    assert claim == claim_of(prediction).text


HOSTILE: Final = (
    "?",
    "No, ",
    "<answer>",
    "\\boxed{",
    "{",
    "a = ",
    "~~",
    "**",
    "answer: ",
    "not but ",
    "\n",
    "是",
    "x ",
)


@pytest.mark.parametrize("part", HOSTILE)
def test_a_long_text_takes_time_in_proportion(part: str) -> None:
    """Quadratic work on these would take minutes, and the suite would not end."""
    claim = claim_of(part * (200_000 // len(part))).text
    assert claim.strip() or not part.strip()


MOST_WORDS: Final = 40
MOST_MISSED: Final = 20
"""Known misses: announcements without a mark ("Absolutely. It is Lake Geneva.", "I would choose A.")."""


def test_the_quick_look_misses_few_claims(monkeypatch: pytest.MonkeyPatch) -> None:
    examples = Path(__file__).parents[4] / "examples/final_answers/development.jsonl"
    texts = [json.loads(line)["text"] for line in examples.read_text(encoding="utf-8").splitlines()]
    short = [text for text in texts if len(text.split()) <= MOST_WORDS]
    assert len(short) > 1_000
    left = [text for text in short if not claims._may_be_cut(text)]
    assert len(left) > 50
    assert all(claim_of(text).text == text for text in left)
    monkeypatch.setattr(claims, "_may_be_cut", lambda _: True)
    missed = [text for text in left if claim_of(text).text != text]
    assert len(missed) <= MOST_MISSED, missed
