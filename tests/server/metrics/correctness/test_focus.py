"""Tests of the sentences of a long answer that say how a reference stands in it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_server.metrics.correctness.focus import Focus
from gradewire_server.metrics.correctness.words import FeatureText

LEAD = "Let us go through this step by step, since the topic has several sides that are easily mixed up by readers."
TAIL = "There are books and films about it that are worth reading or watching on a rainy afternoon at home."


def focus(answer: str, *references: str, question: str = "Which river flows through Vienna?") -> Focus:
    texts = [FeatureText.of(reference) for reference in references or ("the Danube",)]
    return Focus.of(FeatureText.of(question), texts, FeatureText.of(answer))


def test_a_short_answer_is_read_as_a_whole() -> None:
    answer = "The Danube. It is long. Its water is not blue."
    found = focus(answer)
    assert found.statement.raw == found.surroundings.raw == answer


def test_a_long_answer_is_read_around_its_mention() -> None:
    found = focus(f"{LEAD} The Danube comes to mind. It is the Rhine. {TAIL}")
    assert found.statement.raw == "The Danube comes to mind."
    assert found.surroundings.raw == "The Danube comes to mind. It is the Rhine."


def test_a_sentence_before_counts_if_it_has_words_of_the_question() -> None:
    found = focus(f"{LEAD} A river flows through Vienna. The Danube is older. {TAIL}")
    assert found.surroundings.raw.startswith("A river flows through Vienna. The Danube is older.")
    assert "step by step" not in found.surroundings.raw


def test_a_yes_or_no_begins_the_statement() -> None:
    found = focus(f"{LEAD} No. It does so only in spring.", "yes", question="Does the river flow?")
    assert found.statement.raw == "No. It does so only in spring."


def test_without_a_mention_the_closest_sentence_counts() -> None:
    found = focus(f"{LEAD} The river in Vienna is the Rhine. {TAIL}")
    assert found.statement.raw.startswith("The river in Vienna is the Rhine.")


@pytest.mark.parametrize("name", ["Dr. Brown", "J. P. Zenger", "St. Pölten", "Mrs. Hill"])
def test_an_abbreviation_ends_no_sentence(name: str) -> None:
    assert focus(f"{LEAD} {TAIL} It was {name} in the end.", name).statement.raw == f"It was {name} in the end."


def test_a_numbered_line_is_one_sentence() -> None:
    found = focus(f"{LEAD}\n\n1. Rhine\n2. Danube\n3. Elbe\n", "Danube")
    assert found.statement.raw == "2. Danube"
    assert found.surroundings.raw == "2. Danube\n3. Elbe"


def test_a_long_sentence_with_the_mention_is_kept_whole() -> None:
    long = f"The Danube {'and more ' * 60}flows."
    assert focus(f"{LEAD} {long} {TAIL}").statement.raw == long


@given(st.text(max_size=400), st.text(min_size=1, max_size=20))
def test_any_text_has_a_focus_that_is_part_of_it(answer: str, reference: str) -> None:
    found = focus(f"{LEAD} {answer}", reference)
    assert set(found.statement.words) <= set(found.surroundings.words)
    assert len(found.surroundings.raw) <= len(LEAD) + len(answer) + 1


@pytest.mark.parametrize(
    ("answer", "reference"),
    [
        ("No. " + f"{'word ' * 45}end. " * 60, "Yes, it does"),  # more words than are folded
        (f"zzend. {'word ' * 30}Paris.", "Paris"),  # the word that stands between sentences
        (". " * 8_000 + "Paris", "Paris"),
        ("?!" * 200 + f"{LEAD} {TAIL}", "Paris"),
    ],
)
def test_hostile_texts_have_a_focus(answer: str, reference: str) -> None:
    assert focus(answer, reference).surroundings.raw in answer
