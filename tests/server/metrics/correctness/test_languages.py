"""Answers in languages that the rules cannot read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_server.domain.items import Item
from gradewire_server.metrics.correctness.languages import is_unread

UNREAD = [
    ("Was ist die Hauptstadt von Frankreich?", "Paris", "Es ist nicht Paris."),
    ("What is the capital of France?", "Paris", "Ce n'est pas Paris."),
    ("¿Cuál es la capital de Francia?", "París", "Es París."),
    ("What is the capital of France?", "Paris", "Não é Paris."),
    ("Vad är Frankrikes huvudstad?", "Paris", "Det är inte Paris."),
    ("What is the capital of France?", "Paris", "To nie jest Paris."),
    ("Jaka jest stolica?", "Warszawa", "To nie Warszawa"),
    ("Apa ibu kota?", "Jakarta", "Bukan Jakarta"),
    ("Bu hangi kent?", "Paris", "Bu Paris değil."),
    ("フランスの首都はどこですか", "パリ", "パリではありません。"),
    ("Какая столица Франции?", "Париж", "Это не Париж."),
    ("What is the capital of France?", "Paris", "Это не Paris."),
    ("ما هي عاصمة فرنسا؟", "باريس", "ليست باريس."),
    ("法国的首都是哪里", "巴黎", "不是巴黎。"),
    ("프랑스의 수도는?", "파리", "파리가 아닙니다."),
]
READ = [
    ("What is the capital of France?", "Paris", "It is not Paris."),
    ("What is the capital of France?", "Paris", "Paris, as everybody knows, is the capital of la France."),
    ("Wie heißt die Hauptstadt?", "Paris", "Paris."),
    ("フランスの首都はどこですか", "パリ", "「パリ」"),
    ("Какая столица?", "Париж", "ПАРИЖ!"),
    ("Which holiday is on 5 May?", "5 May", "Cinco de Mayo"),
    ("Who sang it?", "Kelis", "The song is by Los Lobos."),
    ("Which song is it?", "99 Luftballons", "Nie wieder"),
    ("What is the angle?", "30", "θ = 30"),
    ("What is it?", "5 km", "5 km"),
    ("Where is it?", "Washington", "Washington, D.C."),
]


@pytest.mark.parametrize(("question", "reference", "answer"), UNREAD)
def test_what_is_said_beyond_a_reference_cannot_be_read(question: str, reference: str, answer: str) -> None:
    assert is_unread(Item("", question, (reference,), answer))


@pytest.mark.parametrize(("question", "reference", "answer"), READ)
def test_english_and_answers_without_a_language_are_read(question: str, reference: str, answer: str) -> None:
    assert not is_unread(Item("", question, (reference,), answer))


@given(st.text(), st.lists(st.text(), min_size=1, max_size=3))
def test_an_answer_that_is_a_reference_has_no_language(question: str, references: list[str]) -> None:
    assert not is_unread(Item("", question, tuple(references), references[0]))
