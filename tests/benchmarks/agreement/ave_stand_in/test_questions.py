"""What questions ask for."""

import pytest
from benchmarks.agreement.ave_stand_in.questions import asked
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("question", "kind", "noun"),
    [
        ("Who played Hamlet?", "person", ""),
        ("the book of nod was written by whom", "person", ""),
        ("When did it end?", "date", ""),
        ("In what year was it built?", "date", "year"),
        ("where is it", "place", ""),
        ("How many people have skateboards?", "count", ""),
        ("how  much did the film make", "amount", ""),
        ("how long is the river", "measure", ""),
        ("why are the lights red", "reason", ""),
        ("Is it raining?", "yes_no", ""),
        ("what genre is the book", "named", "genre"),
        ("It runs between which two South American countries?", "named", "two South American countries"),
        ("what is the Milky Way", "other", ""),
        ("Which liner launched in 1903 rescued them?", "other", ""),
        ("theme of the song", "other", ""),
        ("", "other", ""),
    ],
)
def test_a_question_is_of_a_kind(question: str, kind: str, noun: str) -> None:
    found = asked(question)
    assert (found.kind, found.noun) == (kind, noun)


def test_the_rest_is_what_follows_what_is_asked_for() -> None:
    assert asked("Which sport has a net?").rest == ("has", "a", "net")
    assert asked("who  was\tfirst?").rest == ("was", "first")
    assert asked("who was first").opens
    assert not asked("he was who").opens


@given(st.text(max_size=200))
def test_any_question_is_taken_apart(question: str) -> None:
    found = asked(question)
    assert found.noun in " ".join(question.split())
    assert len(asked(question * 50_000).text) <= 1000
