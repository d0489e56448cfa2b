"""Tests of names: another first or last word, and what is the same name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_server.metrics.correctness.names import name_altered
from gradewire_server.metrics.correctness.words import FeatureText, found_forms


def altered(answer: str, *references: str, question: str = "Who was it?") -> float:
    texts, said = [FeatureText.of(reference) for reference in references], FeatureText.of(answer)
    return name_altered(FeatureText.of(question), texts, found_forms(texts, said), said)


@pytest.mark.parametrize(
    ("answer", "reference"),
    [
        ("Jacques Delors", "Jacques Chirac"),
        ("It was Emily Brontë who wrote it.", "Charlotte Brontë"),
        ("Newton Aycliffe", "Newton Abbot"),
        ("Der Komponist war Johann Strauss.", "Richard Strauss"),
        ("The opinion was written by Judge Harlan Whitlock and is long.", "Judge Harlan Whitmore"),
    ],
)
def test_another_name(answer: str, reference: str) -> None:
    assert altered(answer, reference) == 1


@pytest.mark.parametrize(
    ("answer", "references"),
    [
        ("Jacques Chirac", ["Jacques Chirac"]),
        ("Chirac", ["Jacques Chirac"]),
        ("Jacques René Chirac", ["Jacques Chirac"]),  # a middle name
        ("Jacques Delors", ["Jacques Chirac", "Delors"]),  # another reference
        ("Dave Gahan", ["David Gahan"]),  # a short form
        ("Leo Tolstoi", ["Leo Tolstoy"]),  # a spelling
        ("President Chirac", ["Jacques Chirac"]),  # a title
        ("The Chirac years", ["Jacques Chirac"]),  # a known word
        ("Jacques said so", ["Jacques Chirac"]),  # nothing stands in the place
        ("it is red wine", ["white wine"]),  # no name
        ("R. B. Bennett", ["Richard Bedford Bennett"]),  # initials
        ("", ["Jacques Chirac"]),
    ],
)
def test_the_same_name(answer: str, references: list[str]) -> None:
    assert altered(answer, *references) == 0


def test_a_name_of_the_question_is_no_other_name() -> None:
    asked = "Who was king after Charles Stuart?"
    assert altered("James followed Charles Stuart.", "James Francis Stuart", question=asked) == 0


@given(st.text(max_size=80), st.text(min_size=1, max_size=30))
def test_any_text_is_read(answer: str, reference: str) -> None:
    assert altered(answer, reference) in {0, 1}
