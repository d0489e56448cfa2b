"""Values that an answer gives with another sign or unit, or only compares with, and values that it states."""

import math

import pytest

from gradewire_server.metrics.correctness.value_readings import value_doubts
from gradewire_server.metrics.values.matching import ValueMatcher


def doubts(question: str, answer: str, *references: str) -> dict[str, float]:
    return value_doubts(ValueMatcher(question, answer), question, answer, references)


@pytest.mark.parametrize(
    ("question", "reference", "answer"),
    [
        ("What was the overnight temperature in Yakutsk?", "-41 \u00b0C", "41 \u00b0C"),
        ("What was the overnight temperature in Yakutsk?", "-41 \u00b0C", "It was +41 \u00b0C."),
        ("By how much did profits change?", "+3.4%", "They changed by -3.4%."),
        ("What is the y-coordinate of the vertex?", "-12", "The y-coordinate is 12."),
        ("How tall is the statue?", "46 m", "46 feet"),
        ("How much energy does the snack have?", "180 kcal", "180 kJ"),
        ("What is the dose?", "250 mg", "The dose is 250 g."),
        ("What is the dose?", "250 mg", "The dose is 250 \u00b5g."),
        ("What does the flat cost?", "\u20ac1,200 per month", "\u20ac1,200 per week"),
        ("What is the yearly fee?", "$480", "$480 a month"),
        ("What is the monthly rent?", "850 euros", "850 euros per week"),
        ("What was the revenue?", "$4.2 billion", "$4.2 million"),
        ("When was Augustus born?", "63 BC", "63 AD"),
        ("When was the temple built?", "447 BC", "It was built in 447 AD."),
        ("When does the ferry sail?", "7:15 a.m.", "at 7:15 p.m."),
        ("When does the ferry sail?", "7:15 in the morning", "at 7:15 pm"),
        ("How many people came?", "340", "340%"),
        ("How high does the village lie?", "200 m above sea level", "It lies 200 m below sea level."),
        ("How did the company do?", "a profit of 3 million euros", "a loss of 3 million euros"),
        ("Wie warm war es?", "-8 \u00b0C", "8 \u00b0C"),
        ("What is the field strength?", "2 mT", "2 T"),
        ("What is the dose of radiation?", "5 \u00b5Sv", "5 mSv"),
        ("How much is 15 in the account?", "-20 dollars", "The balance is 20 dollars."),
        ("How large is the plot?", "600 m\u00b2", "600 m\u00b3"),
        ("Combien p\u00e8se le colis ?", "2 kg", "2 g"),
        ("What is the population?", "1.4 billion", "1.4 million people"),
    ],
)
def test_the_number_has_another_sign_unit_period_scale_era_or_half_of_day(
    question: str, reference: str, answer: str
) -> None:
    assert doubts(question, answer, reference)["value_altered"] == 1.0


@pytest.mark.parametrize(
    ("question", "reference", "answer"),
    [
        ("What was the overnight temperature in Yakutsk?", "-41 \u00b0C", "minus 41 degrees"),
        ("What was the overnight temperature in Yakutsk?", "-41 \u00b0C", "41 degrees below zero"),
        ("What was the overnight temperature in Yakutsk?", "-41 \u00b0C", "\u201341 \u00b0C"),
        ("What was the net result?", "-150 million", "a loss of 150 million"),
        ("What is the balance?", "-150 euros", "The account is overdrawn by 150 euros."),
        ("How much did sales fall?", "-5%", "They fell by 5%."),
        ("How much did sales fall?", "-5%", "5%"),
        ("How far below the surface is the wreck?", "-35 m", "35 m"),
        ("How tall is the statue?", "46 m", "151 feet"),
        ("What is the dose?", "250 mg", "0.25 g"),
        ("What does the flat cost?", "\u20ac1,200 per month", "\u20ac1,200 a month"),
        ("What does it cost?", "\u20ac1,200", "\u20ac1,200 a month"),
        ("What is the yearly fee?", "$480", "$480 a year"),
        ("What is the annual fee?", "$480", "$480 per year, or $40 a month"),
        ("When was Augustus born?", "63 BC", "in 63 B.C."),
        ("When does the ferry sail?", "19:15", "7:15 p.m."),
        ("When does the ferry sail?", "7:15", "7:15 p.m."),
        ("What share came?", "34%", "34"),
        ("What was revenue in billions?", "4.6", "$4,625 million"),
        ("What is the population?", "1.4 billion", "1,400 million"),
        ("How much is it?", "$5", "5 dollars"),
        ("How hot is it?", "20 \u00b0C", "20 degrees"),
        ("How many?", "12", "12 people, 3 km away, on 5 May"),
        ("In which year was he born?", "1926", "1926"),
        ("Where is the depot?", "3 km north of the town", "It lies 3 km north of town."),
    ],
)
def test_the_same_amount_in_other_words_is_not_altered(question: str, reference: str, answer: str) -> None:
    assert doubts(question, answer, reference) == {"value_altered": 0.0, "value_compared": 0.0}


@pytest.mark.parametrize(
    ("question", "reference", "answer"),
    [
        ("How old is the violinist?", "27", "She is 4 years older than her brother, who is 27."),
        ("How long is the tunnel?", "9 km", "It is twice as long as the planned 9 km."),
        ("How long is the tunnel?", "9 km", "It's longer than 9 km."),
        ("How many delegates voted?", "300", "Half of the 300 delegates voted."),
        ("When was the mill built?", "1720", "It was built before 1720."),
        ("When was the mill built?", "1720", "some years after 1720"),
        ("How heavy is the parcel?", "3 kg", "less than 3 kg"),
        ("How heavy is the parcel?", "3 kg", "3 kg more than the other one"),
        ("How heavy is the parcel?", "3 kg", "a third of 3 kg"),
        ("How many eggs?", "6", "two more than 6"),
        ("How many eggs?", "6", "6 fewer than yesterday"),
        ("What is the price?", "40 euros", "It is at least 40 euros."),
        ("What is the price?", "40 euros", "40 euros or more"),
        ("How fast was the car?", "80 km/h", "It was three times 80 km/h."),
        ("When does it start?", "18:00", "shortly before 18:00"),
        ("What is the temperature?", "15 \u00b0C", "10 degrees above 15 \u00b0C"),
        ("How many points did she get?", "21", "She got as many points as Kim plus 21"),
    ],
)
def test_the_value_is_only_compared_with(question: str, reference: str, answer: str) -> None:
    assert doubts(question, answer, reference)["value_compared"] == 1.0


@pytest.mark.parametrize(
    ("question", "reference", "answer"),
    [
        ("How old is the violinist?", "27", "She is 27, 4 years older than her brother."),
        ("How long is the tunnel?", "9 km", "9 km, longer than the 5 km planned"),
        ("How long is the tunnel?", "about 9 km", "just under 9 km"),
        ("How many delegates voted?", "150", "Half of the 300 delegates, 150, voted."),
        ("What is the minimum age?", "18", "You must be at least 18."),
        ("What is the maximum speed?", "80 km/h", "up to 80 km/h"),
        ("When was the mill built?", "1720", "It was built in 1720, before the church."),
        ("When was the mill built?", "before 1720", "before 1720"),
        ("How many?", "more than 300", "over 300"),
        ("What is the probability?", "1/3", "One third of the time"),
        ("How many players are on the pitch?", "22", "Two teams of 11, so 22 players"),
        ("What is half of 30?", "15", "half of 30 is 15"),
        ("When did the war end?", "1918", "The war ended in 1918, after the armistice."),
        ("How much is left?", "10 euros", "She has 10 euros left, less than she thought."),
        ("How many days?", "40", "more than a month: 40 days"),
        ("What percentage?", "40%", "40% rather than 50%"),
        ("How old?", "31", "31 years old, older than most"),
    ],
)
def test_a_value_that_is_stated_beside_a_comparison(question: str, reference: str, answer: str) -> None:
    assert doubts(question, answer, reference) == {"value_altered": 0.0, "value_compared": 0.0}


def test_one_reference_that_agrees_suffices() -> None:
    question = "How deep is the trench?"
    assert doubts(question, "11,000 m below sea level", "-11,000 m", "11,000 m below sea level")["value_altered"] == 0.0
    assert doubts(question, "11,000 m above sea level", "-11,000 m", "11,000 m below sea level")["value_altered"] == 1.0


def test_nothing_applies_to_a_reference_without_values() -> None:
    assert all(math.isnan(value) for value in doubts("Who won?", "6 \u00b0C", "Mary", "-6 \u00b0C").values())
    assert all(math.isnan(value) for value in doubts("How cold is it?", "very cold", "-6 \u00b0C").values())


def test_a_decade_for_a_year_only_where_a_year_is_asked() -> None:
    assert doubts("In which year did it open?", "in the 1920s", "1926")["value_altered"] == 1.0
    assert doubts("When did it open?", "in the 1920s", "1926")["value_altered"] == 0.0
