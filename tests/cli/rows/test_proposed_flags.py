"""Flags that rules propose for a question: which, why, and for which questions none."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_cli.rows.columns import RowOptions
from gradewire_cli.rows.formats import Record
from gradewire_cli.rows.proposed_flags import BAD_GOLD, TIME_DEPENDENT, proposals_of, proposed_flags
from gradewire_cli.rows.row import Row, open_rows

TEXTS = st.text(max_size=80) | st.sampled_from(["yes", "no", "unknown", "<br>", "Is it new?", "Who is the king now?"])


def flags_of(question: str, *references: str, **more: Any) -> dict[str, str]:
    return proposed_flags({"question": question, "references": list(references or ["red"]), **more})


@pytest.mark.parametrize(
    ("question", "word"),
    [
        ("Who won the World Series last year?", "last year"),
        ("When is the next election?", "next election"),
        ("who is the player with the most goals in the world cup so far", "so far"),
        ("Who is the current president of France?", "current president"),
        ("What is the latest iPhone?", "latest"),
        ("who is the prime minister of canada", "who is the prime minister"),
        ("Who's the CEO of Apple?", "Who's the CEO"),
        ("which player has the most goals in the premier league", "most goals"),
        ("What is the population of Vienna?", "population of"),
        ("Who holds the 100 m record?", "holds the 100 m record"),
        ("How old is Tom Hanks?", "How old is Tom"),
        ("How many people live there right now?", "right now"),
        ("Which city is known as the richest?", "richest"),
    ],
)
def test_a_question_whose_answer_changes_is_time_dependent(question: str, word: str) -> None:
    reason = flags_of(question)[TIME_DEPENDENT]
    assert f"“{word}”" in reason


@pytest.mark.parametrize(
    "question",
    [
        "",
        "What is the tallest mountain in the world?",  # the guidelines' example of a No
        "Who was the president of the USA in 1962?",
        "who is the king who built the taj mahal",
        "Who had the most goals in 1998?",
        "How does an electric current flow?",
        "Why are the current and the voltage measured?",
        "Is the bird so far away that it cannot be seen?",
        "What is this man doing right now?",  # about the picture
        "How old is the man in this picture?",
        "Who is the king in the picture?",
        "What is it called when it snows?",
        "Who wrote Knowing?",
        "who is the first prime minister of france",
        "when did athens emerge as the wealthiest greek city state",
    ],
)
def test_a_question_whose_answer_stays_is_not(question: str) -> None:
    assert TIME_DEPENDENT not in flags_of(question)


@pytest.mark.parametrize(
    ("question", "references", "reason"),
    [
        ("What is it?", ["unknown"], "the references say nothing (“unknown”)"),
        ("What is it?", ["?", "N/A."], "the references say nothing (“?”)"),
        ("What is it?", ["red", "blue<br>"], "a reference has markup or broken characters (“blue<br>”)"),
        ("What is it?", ["Caf\ufffd"], "a reference has markup or broken characters (“Caf\ufffd”)"),
        ("What is it?", ["A cat &amp; a dog"], "a reference has markup or broken characters (“A cat &amp; a dog”)"),
        ("What is it?", ["what is it"], "a reference repeats the question"),
        ("Is it red?", ["yes", "no"], "the references say both yes (1) and no (1)"),
        ("Is it red?", ["Yes.", "yes", "No", "no"], "the references say both yes (2) and no (2)"),
        ("Where is it?", ["yes"], "the references only say yes or no, but the question begins with “Where”"),
        ("Does it rain?", ["red"], "the question asks for yes or no, but no reference says either (“red”)"),
        ("Isn't it old?", ["a cat"], "the question asks for yes or no, but no reference says either (“a cat”)"),
    ],
)
def test_a_reference_with_an_error_is_bad_gold(question: str, references: Sequence[str], reason: str) -> None:
    assert flags_of(question, *references) == {BAD_GOLD: reason}


@pytest.mark.parametrize(
    ("question", "references"),
    [
        ("What is it?", ["red"]),
        ("What is it?", ["unknown", "red"]),  # some reference says something
        ("Who wrote it?", ["Unknown Mortal Orchestra"]),
        ("Is it red?", ["yes"] * 8 + ["no"] * 2),  # votes of ten annotators
        ("Is it red or blue?", ["red"]),
        ("Is it red?", ["Probably"]),
        ("Is it red?", ["it is red"]),
        ("Can you name the animal?", ["cat"]),
        ("What about the cat, is it red?", ["yes"]),
        ("Which one is less, x < 3 or x > 3?", ["x < 3"]),
        ("", ["yes"]),
    ],
)
def test_a_good_reference_is_not(question: str, references: Sequence[str]) -> None:
    assert BAD_GOLD not in flags_of(question, *references)


def test_references_of_choices_and_of_questions_without_an_answer_are_not_checked() -> None:
    assert flags_of("What is it?", "unknown", answerable=False) == {}
    assert flags_of("Is it red?", "B", choices=["yes", "no"]) == {}
    assert flags_of("Is it red today?", "B", choices=["yes", "no"]).keys() == {TIME_DEPENDENT}
    assert proposed_flags({"references": ["red"]}) == {}


def test_long_and_unprintable_quotations_are_cut_and_written_out() -> None:
    reason = flags_of("What is it?", "\x1b[31m<br>" + "x" * 200)[BAD_GOLD]
    assert "\x1b" not in reason
    assert len(reason) < 140


def row_of(**fields: Any) -> Row:
    (row,) = open_rows("a.jsonl", [Record(0, "line 1", fields)], RowOptions(), only_texts=False).rows
    return row


def test_a_flag_that_the_row_has_is_not_proposed_again() -> None:
    row = row_of(question="Is it red today?", references=["blue"], prediction="no")
    assert [(each.id, each.position, each.flag) for each in proposals_of(row)] == [
        ("0", "line 1", TIME_DEPENDENT),
        ("0", "line 1", BAD_GOLD),
    ]
    assert [each.flag for each in proposals_of(replace(row, flags=(TIME_DEPENDENT,)))] == [BAD_GOLD]
    assert proposals_of(replace(row, item=None)) == []


@given(question=TEXTS, references=st.lists(TEXTS, max_size=4))
def test_any_text_gets_known_flags_with_a_printable_reason(question: str, references: list[str]) -> None:
    found = proposed_flags({"question": question, "references": references})
    assert found.keys() <= {TIME_DEPENDENT, BAD_GOLD}
    assert all(reason and reason.isprintable() for reason in found.values())


@given(question=TEXTS, references=st.lists(TEXTS, min_size=1, max_size=4), spaces=st.text(" \t\n", max_size=3))
def test_white_space_and_the_order_of_references_change_no_flag(
    question: str, references: list[str], spaces: str
) -> None:
    found = proposed_flags({"question": question, "references": references}).keys()
    padded = [f"{spaces}{each}{spaces}" for each in reversed(references)]
    assert proposed_flags({"question": f"{spaces}{question}{spaces}", "references": padded}).keys() == found
