"""What values a text has, by kind."""

import pytest

from gradewire_server.metrics.values.dates import Date
from gradewire_server.metrics.values.matching import NOTHING, ValueMatcher, match_values
from gradewire_server.metrics.values.quantities import Quantity
from gradewire_server.metrics.values.reading import Kind, Outcome, values_of
from gradewire_server.metrics.values.tokens import plain, read_number, roman_value


def test_values_stand_in_their_order_with_what_was_written() -> None:
    text = (
        "On 4 July 1776 at 5:30 pm, 56 men saw the third of 2-butanol \u03bb\u2081 at 9.81 m/s\u00b2 where x < 3 and "
        "x + 1."
    )
    assert [(value.kind, value.text) for value in values_of(text)] == [
        (Kind.DATE, "4 July 1776"),
        (Kind.TIME, "5:30 pm"),
        (Kind.QUANTITY, "56"),
        (Kind.ORDINAL, "third"),
        (Kind.LOCANT, "2-butanol"),
        (Kind.SYMBOL, "\u03bb1"),
        (Kind.QUANTITY, "9.81 m/s^2"),
        (Kind.OPERATOR, "x < 3"),
        (Kind.EXPRESSION, "x + 1"),
    ]
    assert not any(value.whole for value in values_of(text))


def test_a_text_that_is_one_value_says_so() -> None:
    assert [value.whole for value in values_of("1912.")] == [True]


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("three hundred and five", 305, None),
        ("two and a half million", 2_500_000, None),
        ("1.250.000 \u20ac", 1_250_000, "money EUR"),
        ("USD 3.2bn", 3.2e9, "money USD"),
        ("5'11\"", 5 + 11 / 12, "length"),
        ("2 h 15 min", 2.25, "time"),
        ("minus twenty", -20, None),
        ("$(120) million", -120e6, "money USD"),
        ("3\u00bd", 3.5, None),
        ("1 in 5", 0.2, None),
        ("\u0663\u0664", 34, None),
        ("6 x 10^-3", 0.006, None),
    ],
)
def test_quantities(text: str, value: float, unit: str | None) -> None:
    (found,) = values_of(text)
    assert isinstance(found.content, Quantity)
    assert found.content.value == pytest.approx(value)
    assert (found.content.dimension[0][0] if found.content.dimension else None) == unit


@pytest.mark.parametrize(
    ("text", "years"),
    [
        ("the 1970s", (1970, 1979)),
        ("the seventies", (1970, 1979)),
        ("19th century", (1801, 1900)),
        ("5th century BC", (-500, -401)),
        ("1914-18", (1914, 1918)),
        ("between 1440 and 1450", (1440, 1450)),
        ("AD 800", (800, 800)),
        ("the 600s", (600, 699)),
    ],
)
def test_dates_are_stretches_of_years(text: str, years: tuple[int, int]) -> None:
    (found,) = values_of(text)
    stretch = Date.years(*years)
    assert isinstance(found.content, Date)
    assert found.content.days == stretch.days


@pytest.mark.parametrize(("word", "value"), [("XIV", 14), ("MCMXC", 1990), ("IIX", None), ("", None), ("Mix", None)])
def test_roman_numerals(word: str, value: int | None) -> None:
    assert roman_value(word) == value


@pytest.mark.parametrize(
    ("text", "number", "place"),
    [("8,800", 8800, 100), ("3.14", 3.14, 0.01), ("1.250.000", 1.25e6, 1e4), ("5e-7", 5e-7, 1e-7), (".5", 0.5, 0.1)],
)
def test_numbers_in_digits(text: str, number: float, place: float) -> None:
    assert read_number(text) == (pytest.approx(number), pytest.approx(place))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("m\u00b2", "m^2"),
        ("\u03bb\u2081", "\u03bb1"),
        ("Fe\u00b2\u207a", "Fe2+"),
        ("x \u2264 3", "x <= 3"),
        ("1914\u20131918", "1914-1918"),
        ("\\frac{1}{2}", "((1)/(2))"),
        ("$\\sqrt{2}$", "sqrt(2)"),
        ("plain", "plain"),
    ],
)
def test_plain_form(text: str, expected: str) -> None:
    assert plain(text) == expected


def test_a_reference_without_values_leaves_the_answer_unread() -> None:
    class Unread(str):
        __slots__ = ()

        def __hash__(self) -> int:
            raise AssertionError("was read")

    assert match_values("", "a cat", Unread("in 1912")) is NOTHING


def test_one_answer_is_matched_with_many_references() -> None:
    matcher = ValueMatcher("When?", "in April 1912")
    assert [matcher.match(reference).outcome for reference in ("1912", "1913", "15 April 1912", "a cat")] == [
        Outcome.FOUND,
        Outcome.CONTRADICTED,
        Outcome.MISSING,
        None,
    ]


@pytest.mark.parametrize(
    "answer",
    [
        "It was not founded in 1871 but in 1875.",
        "It didn't open in 1871.",
        "not in 1870 or 1871",
        "Rather than 1871, it was later.",
        "It was never 1871.",
        "It was founded in 1875 instead of 1871.",
    ],
)
def test_a_value_that_is_denied_contradicts(answer: str) -> None:
    match = match_values("When was it founded?", "1871", answer)
    assert (match.found, match.contradicted) == (0, 1)


def test_a_value_that_is_denied_stands_in_no_place() -> None:
    assert match_values("When was it founded?", "1871", "It was not 1875.").contradicted == 0


def test_of_a_reference_only_what_it_does_not_deny_is_wanted() -> None:
    assert match_values("When?", "1871, not 1875", "In 1871").outcome is Outcome.FOUND
    assert match_values("When?", "not 1875", "It was not 1875.").outcome is Outcome.FOUND


def test_an_amount_on_top_of_another_one_is_not_the_one_that_is_asked() -> None:
    answer = "It cost £35, the guide another £25."
    assert match_values("How much was the ticket?", "£25", answer).outcome is Outcome.CONTRADICTED
    assert match_values("How much was the ticket?", "£35", answer).outcome is Outcome.FOUND


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("Bis zum 31. M\u00e4rz 2027", Date.of(2027, 3, 31)),
        ("am 1. August 1291", Date.of(1291, 8, 1)),
        ("am 5. Juni", Date.of(None, 6, 5)),
        ("le 14 juillet 1789", Date.of(1789, 7, 14)),
        ("1er mai 2020", Date.of(2020, 5, 1)),
        ("el 3 de mayo de 2020", Date.of(2020, 5, 3)),
        ("12 de octubre de 1492", Date.of(1492, 10, 12)),
        ("im Dezember 1989", Date.of(1989, 12, None)),
        ("en enero de 2019", Date.of(2019, 1, None)),
        ("en mars 2021", Date.of(2021, 3, None)),
        ("5 juin", Date.of(None, 6, 5)),
        ("le 3 mars \u00e0 Paris", Date.of(None, 3, 3)),
        ("el 2 mayo en Madrid", Date.of(None, 5, 2)),
        ("lundi 5 juin \u00e0 Paris", Date.of(None, 6, 5)),
        ("3. Oktober in Berlin", Date.of(None, 10, 3)),
        ("2 mayo, en Madrid", Date.of(None, 5, 2)),
    ],
)
def test_german_french_and_spanish_dates(text: str, date: Date) -> None:
    assert [value.content for value in values_of(text)] == [date]


@pytest.mark.parametrize(
    ("text", "euros"),
    [
        ("1.234,50 \u20ac", 1234.5),
        ("\u20ac1,10", 1.1),
        ("\u20ac 1.234.567,89", 1234567.89),
        ("EUR 1,5", 1.5),
        ("1,5 \u20ac", 1.5),
        ("\u20ac1,100", 1100),
        ("\u20ac1,100.50", 1100.5),
    ],
)
def test_decimal_commas_and_points_of_thousands_next_to_euros(text: str, euros: float) -> None:
    (value,) = values_of(text)
    assert isinstance(value.content, Quantity)
    assert value.content.value == euros
    assert value.content.unit is not None
    assert value.content.unit.dimension == (("money EUR", 1),)


@pytest.mark.parametrize(
    "text", ["4 Mars rovers", "a Mars rover", "im Mai", "Juli", "3 mars bars", "1 mayo sandwich", "2 mayo-filled jars"]
)
def test_a_month_of_another_language_needs_a_day_or_a_year(text: str) -> None:
    assert not any(isinstance(value.content, Date) for value in values_of(text))


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("Cinquante-huit.", 58),
        ("quatre-vingt-dix-sept", 97),
        ("quatre-vingts", 80),
        ("soixante et onze", 71),
        ("vingt et un ans", 21),
        ("vingt-et-un", 21),
        ("vingt et une", 21),
        ("trente et une voitures", 31),
        ("quarante-et-une", 41),
        ("soixante-et-onze", 71),
        ("quatre-vingt-une", 81),
        ("dreissig Franken", 30),
        ("zwoelf", 12),
        ("veintidos", 22),
        ("dix-sept", 17),
        ("achtundf\u00fcnfzig", 58),
        ("Zweiundzwanzig", 22),
        ("Es sind sechzehn L\u00e4nder", 16),
        ("drei\u00dfig Grad", 30),
        ("cincuenta y ocho", 58),
        ("veintid\u00f3s", 22),
        ("Hubo trece heridos.", 13),
    ],
)
def test_german_french_and_spanish_numbers(text: str, number: int) -> None:
    found = [value.content for value in values_of(text) if isinstance(value.content, Quantity)]
    assert [(amount.value, amount.place) for amount in found] == [(number, 10.0 if number % 10 == 0 else 1.0)]


@pytest.mark.parametrize(
    "text",
    [
        "Trois-Rivi\u00e8res",
        "in Trois-Rivi\u00e8res",
        "les Trois Fr\u00e8res",
        "an elf",
        "to seize it",
        "un homme",
        "MS-DOS",
    ],
)
def test_names_and_words_are_no_numbers_of_another_language(text: str) -> None:
    assert values_of(text) == ()
