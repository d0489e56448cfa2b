"""What questions ask for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.bench.few_words import WORDS

from gradewire_cli.bench.ave_descriptions import PLAIN, WORDY, asked, described


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


@pytest.mark.parametrize(
    ("question", "answer", "sentence"),
    [
        ("who played the ice queen?", "Tilda Swinton", "Tilda Swinton played the ice queen."),
        ("who is the 11th prime minister", "Bennett.", "Bennett is the 11th prime minister."),
        ("what is the capital of Peru", "Lima", "The capital of Peru is Lima."),
        ("where was the first season filmed", "Sudbury", "The first season was filmed in Sudbury."),
        ("when was the song released", "May 3, 1999", "The song was released on May 3, 1999."),
        ("when was the song released", "in 1999", "The song was released in 1999."),
        (
            "which two countries have a coast",
            "Chile and Peru",
            "Chile and Peru are the two countries that have a coast.",
        ),
        ("what sport is known as ping pong", "tennis", "Tennis is the sport that is known as ping pong."),
    ],
)
def test_plain_grammar_is_restated(question: str, answer: str, sentence: str) -> None:
    last = described(question, answer, key="k", words=WORDS)[-1]
    assert last == (sentence, "restated")


@pytest.mark.parametrize(
    "question", ["who did she marry", "what genre is the book", "where does it come from", "theme of it"]
)
def test_other_grammar_is_quoted(question: str) -> None:
    text, form = described(question, "this", key="k", words=WORDS)[-1]
    assert form == "quoted"
    assert f'"{question}"' in text


def test_keys_choose_among_the_sentences_of_the_kind() -> None:
    question = "which genre is it"
    assert asked(question).kind == "named"
    plain, wordy = (
        {described(question, "horror", key=f"{key}", words=WORDS)[place].text.lower() for key in range(60)}
        for place in (0, 1)
    )
    values = {"p": "horror", "n": "genre", "is": "is"}
    assert plain == {f"{template.format_map(values).rstrip('.')}.".lower() for template in PLAIN["named"]}
    assert wordy == {template.format_map(values).lower() for template in WORDY["named"]}


@pytest.mark.parametrize(
    ("answer", "time"),
    [("1999", "in 1999"), ("June 4", "on June 4"), ("the 1960s", "in the 1960s"), ("Easter", "at the time of Easter")],
)
def test_a_time_has_its_preposition(answer: str, time: str) -> None:
    assert any(time in described("when did it end", answer, key=f"{key}", words=WORDS)[0].text for key in range(9))


@given(st.text(max_size=80), st.text(min_size=1, max_size=30), st.text(max_size=5))
def test_three_different_sentences_say_the_answer(question: str, answer: str, key: str) -> None:
    found = described(question, answer, key=key, words=WORDS)
    assert found == described(question, answer, key=key, words=WORDS)
    assert len({text for text, _ in found}) == 3
    said = answer.strip().rstrip(".") or answer.strip()
    assert all(said.lower() in text.lower() for text, _ in found if said == said.lower().upper() or said.isascii())


def test_templates_hold_the_answer_and_nothing_unknown() -> None:
    for templates in (*PLAIN.values(), *WORDY.values()):
        assert len(set(templates)) == 4
        for template in templates:
            filled = template.format_map({"p": "ANSWER", "n": "NOUN", "is": "is", "when": "in ANSWER"})
            assert filled.count("ANSWER") == 1


def test_a_question_of_a_megabyte_is_not_quoted() -> None:
    found = described("word " * 200_000, "this", key="k", words=WORDS)
    assert [form for _, form in found] == ["plain", "wordy", "wordy"]
    assert max(len(text) for text, _ in found) < 200
