"""Whether a sentence is about its question, or repeats what the judge was shown."""

from typing import Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gradewire_server.metrics.judged.prompts import PACKAGE_PROMPTS
from gradewire_server.scoring.synthetic.check import Flaw
from gradewire_server.scoring.synthetic.echo import Shown, find_echo, is_about

PROMPT: Final = PACKAGE_PROMPTS.find("synthetic", "")
CAPITAL: Final = "What is the capital of China?"


@pytest.mark.parametrize(
    ("sentence", "question", "reference", "flaw"),
    [
        ("The capital of China is Beijing.", CAPITAL, "Beijing", None),
        # The criticism, the instructions, the item's own words.
        ("Beijing: it did not contain the words of the answer.", CAPITAL, "Beijing", Flaw.INSTRUCTIONS),
        ("Beijing. THE LAST SENTENCE, was not good", CAPITAL, "Beijing", Flaw.INSTRUCTIONS),
        ("Begin with the answer Beijing.", CAPITAL, "Beijing", Flaw.INSTRUCTIONS),
        ("Beijing, as somebody would say it, is the capital.", CAPITAL, "Beijing", Flaw.INSTRUCTIONS),
        # The same words where question or answer brought them.
        ("The capital is 'Begin with the answer'.", CAPITAL, "Begin with the answer", None),
        ("It did not contain the words.", "What did the box not contain?", "the words", None),
        # Function words in the order of the instructions.
        ("Leon is a town that is not in France.", "What is Leon?", "town", None),
        # Demonstrations, whole or with another answer.
        ("Beijing: the boy is holding a kite.", CAPITAL, "Beijing", Flaw.EXAMPLE),
        ("Beijing painted The Night Watch.", CAPITAL, "Beijing", Flaw.EXAMPLE),
        ("Penguins live in Beijing.", CAPITAL, "Beijing", Flaw.EXAMPLE),
        ("Penguins live in Antarctica.", "Where do penguins live?", "Antarctica", None),
        ("The boy is holding a bat.", "What does the boy hold?", "bat", None),
        ("Lautrec watched the night sky.", "Who watched the sky?", "Lautrec", None),
        # Another script: nothing there is the prompt's.
        ("\u5317\u4eac\u662f\u9996\u90fd\u3002", "\u9996\u90fd\uff1f", "\u5317\u4eac", None),
    ],
)
def test_echoes(sentence: str, question: str, reference: str, flaw: Flaw | None) -> None:
    found = find_echo(sentence, Shown(PROMPT, "again", Flaw.MISSING_WORDS), question=question, reference=reference)
    assert found is flaw


def test_only_what_was_shown_is_repeated() -> None:
    said = "It only repeated the answer, Beijing."
    for problem, flaw in ((Flaw.ONLY_ANSWER, Flaw.INSTRUCTIONS), (Flaw.EMPTY, None)):
        assert find_echo(said, Shown(PROMPT, "again", problem), question=CAPITAL, reference="Beijing") is flaw


@pytest.mark.parametrize(
    ("sentence", "question", "reference", "about"),
    [
        ("Paris is the capital.", "What is the capital of France?", "Paris", True),
        ("Paris is very nice.", "What is the capital of France?", "Paris", False),
        ("Kim is swimming.", "Who swims?", "Kim", False),
        ("Kim is swimming.", "Who can swim?", "Kim", True),
        ("Kim has an ox.", "What has an oxen?", "Kim", False),
        ("Moscow was it.", "What was it?", "Moscow", True),
        ("Yes, it is.", "Is it?", "yes", True),
        # What the answer says already is no relation, and where all is in it none can be asked for.
        ("The red car it is.", "Is the car red or blue?", "the red car", False),
        ("The red car it is.", "The car?", "the red car", True),
        ("\u5317\u4eac\u662f\u9996\u90fd\u3002", "\u9996\u90fd\uff1f", "\u5317\u4eac", True),
        ("\u5317\u4eac\u5f88\u5927\u3002", "\u9996\u90fd\uff1f", "\u5317\u4eac", False),
        ("It is +.", "?!", "+", True),
    ],
)
def test_relations(sentence: str, question: str, reference: str, about: bool) -> None:  # noqa: FBT001 - a column
    assert is_about(sentence, question, reference) is about


texts = st.text(min_size=1).filter(str.strip)


@given(texts, texts)
def test_what_question_and_answer_say_is_never_an_echo(question: str, reference: str) -> None:
    for said in (question, reference):
        assert find_echo(said, Shown(PROMPT, "again", ""), question=question, reference=reference) is None


@given(texts, texts, texts)
@example(sentence="0", question="0\U000e00000", reference="0")
def test_a_sentence_with_the_whole_question_in_it_is_about_it(sentence: str, question: str, reference: str) -> None:
    assert is_about(f"{sentence} {question} {sentence}", question, reference)
