"""What only looks like a value of a kind: each rule has examples that it must leave alone."""

import pytest

from gradewire_server.metrics.values.matching import match_values
from gradewire_server.metrics.values.reading import Kind, values_of


def kinds(text: str) -> set[Kind]:
    return {value.kind for value in values_of(text)}


@pytest.mark.parametrize(
    "text",
    [
        "You may go. May I come in?",
        "They march on, step by step.",
        "I sat in the sun, and the wind will fall.",
        "Spring water and a winter coat",
        "Sun, Sat and Mar are names here",
        "It came second in the race",
        "The century plant flowers late",
        "a quarter of it",
        "$1984",
        "1,984 men",
        "1984 km",
        "1984%",
    ],
)
def test_no_date(text: str) -> None:
    assert Kind.DATE not in kinds(text)


@pytest.mark.parametrize(
    "text",
    [
        "I met her, and I left.",
        "No one knows; nobody did, and everyone went.",
        "That is the point, to a degree.",
        "A bit of a pound cake",
        "Which one? This one. The other one.",
        "May the best dog win a foot race",
        "MIX, CIVIC and DILL are words; so is LIVID",
        "vitamin C and plan D",
        "an X-ray of the chest",
        "in, at, as, am",
        "a",
        "",
    ],
)
def test_no_value(text: str) -> None:
    assert not values_of(text)


@pytest.mark.parametrize("text", ["It took one second.", "10 seconds", "a metre per second", "5 m per second"])
def test_the_unit_second_is_no_place_in_an_order(text: str) -> None:
    assert Kind.ORDINAL not in kinds(text)


@pytest.mark.parametrize(
    "text", ["In 5 days", "About 300", "Only 3 of them", "Mount Everest has 8,848 m", "The 7 dwarfs"]
)
def test_a_number_behind_a_capital_is_not_always_a_name(text: str) -> None:
    assert kinds(text) == {Kind.QUANTITY}


@pytest.mark.parametrize(
    "text",
    [
        "and/or, w/o, his/her",
        "Yes! Really?",
        "A+ for effort",
        "well-known and old-fashioned",
        "I - a man of 30 - agree",
        "C++ and A/B tests",
        "km/h",
        "4 km^2 of land",
        "the 1990s-2000s",
        "p. 5",
        "5-10k people",
    ],
)
def test_no_formula(text: str) -> None:
    assert kinds(text).isdisjoint({Kind.EXPRESSION, Kind.OPERATOR})


@pytest.mark.parametrize(
    "text",
    [
        "a 3-year-old boy",
        "x-ray and t-shirt",
        "a 2-metre wall",
        "a 5-star hotel of 1950-built houses",
        "the 3-button mouse",
        "an e-mail to the o-ring maker",
        "F-16",
        "a meta-analysis",
        "trans-Siberian",
        "para-sailing",
        "(I) think",
    ],
)
def test_no_chemical_name(text: str) -> None:
    assert Kind.LOCANT not in kinds(text)


@pytest.mark.parametrize("text", ["iPhone4", "word2vec", "2nd", "1990s", "5 m2", "Q3 2021", "WW2", "10k", "mp3s"])
def test_no_sign_with_an_index(text: str) -> None:
    assert Kind.SYMBOL not in kinds(text)


@pytest.mark.parametrize(
    ("question", "reference", "answer"),
    [
        ("Who are they?", "Tom, Dick and Harry", "Harry, Tom and Dick"),  # no order is asked for
        ("What do you need in order to vote?", "a card, a pen", "a pen and a card"),
        ("Who played in Harry Potter and the Order of the Phoenix?", "Radcliffe, Watson", "Watson and Radcliffe"),
        ("Who said it?", "He, then and there", "then"),
    ],
)
def test_a_list_whose_order_does_not_count_is_no_value(question: str, reference: str, answer: str) -> None:
    assert Kind.LIST not in match_values(question, reference, answer).kinds


@pytest.mark.parametrize(
    ("reference", "answer"),
    [
        ("World War II", "There were 2 of them."),
        ("iPhone 4", "4 phones"),
        ("555-0123", "555 to 123"),
        ("version 2.0.1", "2.01"),
        ("Henry VIII", "8 men called Henry"),
        ("the third floor", "a third of it"),
        ("5 km", "5 kg"),
        ("3:2", "3 and 2"),
        ("12/25/1999", "12 of 25 in 1999"),
        ("27 BC", "27"),
    ],
)
def test_the_same_digits_are_not_the_same_value(reference: str, answer: str) -> None:
    match = match_values("", reference, answer)
    assert match.wanted
    assert match.found < match.wanted


@pytest.mark.parametrize(
    ("reference", "answer"),
    [
        ("in 1912", "She sank on her first voyage."),
        ("5 km", "It weighs 3 kg and cost $12."),
        ("Henry VIII", "Elizabeth I"),
        ("x < 3", "y > 3"),
        ("third floor", "second street"),
        ("27%", "27 of them"),
    ],
)
def test_a_value_of_another_unit_or_thing_contradicts_nothing(reference: str, answer: str) -> None:
    assert match_values("", reference, answer).contradicted == 0


@pytest.mark.parametrize(
    "answer",
    [
        "It was 1999, not 2001.",
        "It did not open until 1999.",
        "Not only in 1999 but every year",
        "They were not late, and it opened in 1999.",
        "It has not closed since 1999.",
        "The year that was not wet was 1999.",
        "Not 1998 but 1999",
        "I do not know more than this: 1999",
        "It didn't close in 1998, it opened in 1999.",
    ],
)
def test_a_negation_of_something_else_denies_nothing(answer: str) -> None:
    assert match_values("When did it open?", "1999", answer).found == 1


@pytest.mark.parametrize(
    ("question", "reference", "answer"),
    [
        ("How much was the guide?", "£25", "The ticket cost £35, the guide another £25."),  # of what is asked
        ("How much was it?", "£25", "Another £25"),  # on top of nothing
        ("How much more was it?", "another £25", "£35, and then another £25"),
        ("Which is no prime?", "It is not 7 but 9", "not 7 but 9"),
    ],
)
def test_what_comes_on_top_counts_where_it_is_what_is_asked(question: str, reference: str, answer: str) -> None:
    assert match_values(question, reference, answer).found == 1
