"""What a sentence has to be to stand for a reference."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_server.metrics.checks import is_blank
from gradewire_server.scoring.synthetic.check import Flaw, find_flaw, holds_answer, stands_for_itself

CAPITAL = "What is the capital of France?"


@pytest.mark.parametrize(
    ("sentence", "question", "reference", "flaw"),
    [
        ("The capital of France is Paris.", CAPITAL, "Paris", None),
        ("The capital of France is Paris.", "capital of france", "paris", None),
        ("Paris is it.", CAPITAL, "PARIS", None),
        ("", CAPITAL, "Paris", Flaw.EMPTY),
        ("...", CAPITAL, "Paris", Flaw.MISSING_WORDS),
        ("The capital is Lyon.", CAPITAL, "Paris", Flaw.MISSING_WORDS),
        ("Parisians live in the capital.", CAPITAL, "Paris", Flaw.MISSING_WORDS),
        ("Paris.", CAPITAL, "Paris", Flaw.ONLY_ANSWER),
        ('"Paris"', CAPITAL, "Paris", Flaw.ONLY_ANSWER),
        ("Paris, Paris.", CAPITAL, "Paris", Flaw.ONLY_ANSWER),
        ("The Paris.", CAPITAL, "Paris", Flaw.ONLY_ANSWER),
        ("Lee Oswald.", "Who did it?", "Oswald, Lee", Flaw.ONLY_ANSWER),
        ("What is the capital of France?", CAPITAL, "Paris", Flaw.QUESTION),
        ("Is the capital of France Paris?", CAPITAL, "Paris", Flaw.QUESTION),
        ("What is the capital of France: Paris.", CAPITAL, "Paris", Flaw.QUESTION),
        ("Paris, what is the capital of France.", CAPITAL, "Paris", Flaw.QUESTION),
        ("What is the capital of France is Paris.", "what is the capital of france", "Paris", Flaw.QUESTION),
        ("Who: Paris.", "Who?", "Paris", Flaw.QUESTION),
        ("Capital of France.", "capital of france", "France", Flaw.QUESTION),
        # A question that is a phrase belongs into a good sentence.
        ("The color of the car is red.", "Color of the car?", "red", None),
        ("Mustangs are a type of horse.", "Mustangs are a type of?", "horse", None),
        # Binary questions.
        ("Yes, the sky is blue.", "is the sky blue", "yes", None),
        ("Is the sky blue yes.", "is the sky blue", "yes", Flaw.QUESTION),
        # An answer with a question mark of its own.
        ("The play is Who's Afraid of Virginia Woolf?", "Which play?", "Who's Afraid of Virginia Woolf?", None),
        # Lemmas, articles, order, compounds.
        ("There are two kittens.", "What is there?", "kitten", None),
        ("Some Beatles wrote it.", "Who wrote it?", "The Beatles", None),
        ("The letter is an A.", "Which letter?", "A", None),
        ("Lee Harvey Oswald did it.", "Who did it?", "Oswald, Lee", None),
        ("He is a well known man.", "What is he?", "well-known", None),
        ("He is at the party.", "Where is he?", "art", Flaw.MISSING_WORDS),
        # Scripts without blanks: the answer as it stands, not its letters.
        (
            "\u65e5\u672c\u306e\u9996\u90fd\u306f\u6771\u4eac\u3067\u3059\u3002",
            "\u9996\u90fd\u306f\uff1f",
            "\u6771\u4eac",
            None,
        ),
        (
            "\u4eac\u90fd\u306f\u6771\u306b\u3042\u308b\u3002",
            "\u9996\u90fd\u306f\uff1f",
            "\u6771\u4eac",
            Flaw.MISSING_WORDS,
        ),
        # No word character in the answer.
        ("The sign for adding is +.", "Which sign?", "+", None),
        ("The sign for adding is minus.", "Which sign?", "+", Flaw.MISSING_WORDS),
        ("word " * 60 + "Paris.", CAPITAL, "Paris", Flaw.UNFINISHED),
    ],
)
def test_flaws(sentence: str, question: str, reference: str, flaw: Flaw | None) -> None:
    assert find_flaw(sentence, question=question, reference=reference, finished=True) is flaw


def test_a_sentence_that_was_cut_is_none() -> None:
    sentence = "The capital of France is Paris, which"
    assert find_flaw(sentence, question=CAPITAL, reference="Paris", finished=False) is Flaw.UNFINISHED


def test_every_flaw_can_be_told_to_a_judge() -> None:
    assert all(flaw.value.startswith("it ") for flaw in Flaw)


@pytest.mark.parametrize(
    ("reference", "stands"),
    [
        ("Paris", False),
        (" ".join(["word"] * 16), False),
        (" ".join(["word"] * 17), True),
        ("\u6771" * 200, False),
        ("\u6771" * 201, True),
        ("x" * 1_000_000, True),
        ("- " * 90 + "word", False),
    ],
)
def test_long_references_stand_for_themselves(reference: str, stands: bool) -> None:  # noqa: FBT001 - a table's column
    assert stands_for_itself(reference) is stands


texts = st.text(max_size=30).filter(lambda text: not is_blank(text))
words = st.lists(
    st.sampled_from(
        ["the", "Paris", "cat", "cats", "\u6771\u4eac", "caf\u00e9", "8", "is", "what", "?", "+", "no-one"]
    ),
    min_size=1,
    max_size=6,
).map(" ".join)


@given(texts | words, texts | words, texts | words)
def test_what_passes_holds_the_answer_and_more(sentence: str, question: str, reference: str) -> None:
    flaw = find_flaw(sentence, question=question, reference=reference, finished=True)
    if flaw is None:
        assert holds_answer(sentence, reference)
        assert sentence.split() != reference.split()
        assert sentence.split() != question.split()


@given(words)
def test_a_text_holds_itself(text: str) -> None:
    assert holds_answer(f"So it is {text} today.", text)


@given(texts | words, st.integers(1, 3))
def test_the_question_never_passes(question: str, marks: int) -> None:
    # Not even where the answer is a part of it, nor with another mark.
    for copy in (question, question + "?" * marks, question + "." * marks):
        assert find_flaw(copy, question=question, reference="a cat", finished=True) is not None
