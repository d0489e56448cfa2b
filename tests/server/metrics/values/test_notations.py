"""Notations that depend on the question's language or subject."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_server.metrics.values.notations import has_decimal_comma, rewritten


@pytest.mark.parametrize(
    ("question", "comma"),
    [
        ("Wie viele Einwohner hat die Stadt?", True),
        ("Quelle est la distance ?", True),
        ("¿Cuál es la masa?", True),
        ("How many people live there?", False),
        ("What does the German word 'wie' mean?", False),
        ("", False),
    ],
)
def test_languages_with_decimal_commas(question: str, *, comma: bool) -> None:
    assert has_decimal_comma(question) is comma


@pytest.mark.parametrize(
    ("question", "text", "expected"),
    [
        ("Wie viele Einwohner hat die Stadt?", "12.500", "12500"),
        ("Wie hoch ist der Betrag?", "1.489,90 €", "1489.90 €"),
        ("Quelle est la distance ?", "3,75 km", "3.75 km"),
        ("Wie groß ist x?", "4{,}7", "4.7"),
        ("What is the total?", "$2.315,75", "$2315.75"),
        ("What is the total?", "2,315.75", "2,315.75"),
        ("What is the set?", "2,3", "2,3"),
        ("Um wie viel Uhr beginnt es?", "um 19.30 Uhr", "um 19:30"),
        ("Um wie viel Uhr beginnt es?", "um halb neun abends", "um 8:30 pm"),
        ("Um wie viel Uhr beginnt es?", "um 8 Uhr morgens", "um 8:00 am"),
        ("À quelle heure ferme le magasin ?", "19h15", "19:15"),
        ("Wann wurde Rom gegründet?", "753 v. Chr.", "753 BC"),
        ("En quelle année était la bataille ?", "52 apr. J.-C.", "52 AD"),
        ("¿Cuándo se firmó la ley?", "6/12/1978", "1978-12-6"),
        ("¿En qué siglo vivió?", "siglo XVIII", "18th century"),
        ("À quel étage habite-t-elle ?", "au deuxième étage", "au 2nd étage"),
        ("Combien coûte le livre ?", "neuf euros", "9 euros"),
        ("Combien d'élèves sont là ?", "soixante-seize", "soixante-seize"),
        ("Combien de temps dure le trajet ?", "une heure et demie", "1.5 heures"),
        ("How long did the winner need?", "2:05:30", "2 h 05 min 30 s"),
        ("What was the net profit?", "(250)", "-250"),
        ("What was the net profit?", "$(860)", "$-860"),
        ("What was the net cash?", "($12.5 million)", "-$12.5 million"),
        ("How many guests came?", "(250)", "(250)"),
        ("What are the coordinates?", "41.73 N, 49.95 W", "41.73° N, 49.95° W"),
        ("有多少只猫？", "一只猫", "1只猫"),
        ("这是什么？", "一只猫", "一只猫"),
        ("Where is it?", "48°51′N", "48.85° N"),
    ],
)
def test_rewritten(question: str, text: str, expected: str) -> None:
    assert rewritten(question, text) == expected


@given(st.integers(0, 999_999), st.integers(0, 99))
def test_german_amounts_keep_their_value(whole: int, cents: int) -> None:
    grouped = f"{whole:,}".replace(",", ".")
    assert float(rewritten("Wie hoch ist der Betrag?", f"{grouped},{cents:02}")) == pytest.approx(whole + cents / 100)


@given(
    st.sampled_from(["Wie viel?", "Quelle heure ?", "net loss", "how long", "coordinates", ""]), st.text(max_size=80)
)
def test_no_text_raises_an_error(question: str, text: str) -> None:
    assert isinstance(rewritten(question, text), str)


def test_only_the_beginning_of_a_huge_text_is_rewritten() -> None:
    text = "1.000 " * 20_000
    assert rewritten("Wie viele sind es?", text).endswith("1.000 ")
