"""Values that an answer gives with another sign or unit, or only compares with, and values that it states."""

import math

import pytest

from gradewire_server.metrics.values.matching import ValueMatcher
from gradewire_server.metrics.values.value_readings import value_doubts


def doubts(question: str, answer: str, *references: str) -> dict[str, float]:
    return value_doubts(ValueMatcher(question, answer), question, answer, references)


@pytest.mark.parametrize(
    ("question", "reference", "answer"),
    [
        ("What was the overnight temperature in Yakutsk?", "-41 \u00b0C", "41 \u00b0C"),
        ("What was the overnight temperature in Yakutsk?", "-41 \u00b0C", "It was +41 \u00b0C."),
        ("By how much did profits change?", "+3.4%", "They changed by -3.4%."),
        ("What is the y-coordinate of the vertex?", "-12", "The y-coordinate is 12."),
        ("What is 2 minus 7?", "-5", "5"),
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
        ("What's the freezing point of the mixture?", "-18 \u00b0C", "18 \u00b0C"),
        ("What is the focal length?", "-50 cm", "f = 50 cm"),
        ("What is the change in enthalpy?", "-286 kJ/mol", "286 kJ/mol"),
        ("What is the change in enthalpy?", "-286 kJ/mol", "+286 kJ/mol"),
        ("What is the voltage?", "12 kV", "12 V"),
        ("How long is the cable?", "25 m", "25 km"),
        ("How long is the cable?", "25 m", "25 cm"),
        ("How long does it take?", "40 minutes", "40 hours"),
        ("How fast is it?", "90 km/h", "90 m/s"),
        ("How fast is it?", "90 km/h", "90 mph"),
        ("What's the memory?", "16 GB", "16 MB"),
        ("What's the memory?", "16 GB", "16 Gbit"),
        ("What did it cost?", "\u00a335", "\u20ac35"),
        ("What did it cost?", "35 pounds", "35 dollars"),
        ("How deep is the lake?", "140 feet", "140 metres"),
        ("How many calories per day?", "2,000 kcal a day", "2,000 kcal a week"),
        ("What is the hourly wage?", "14 euros", "14 euros a day"),
        ("What is the latitude?", "33\u00b0 S", "33\u00b0 N"),
        ("When was the battle?", "490 BC", "AD 490"),
        ("What time is it?", "3:00 in the afternoon", "3:00 in the morning"),
        ("What's the pulse of the laser?", "30 fs", "30 ps"),
        ("What concentration?", "0.5 mol/l", "0.5 mmol/l"),
        ("What activity?", "40 MBq", "40 kBq"),
        ("What is the loudness?", "70 dB", "70 Hz"),
        ("Wie gro\u00df ist das Grundst\u00fcck?", "500 m\u00b2", "500 km\u00b2"),
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
        ("What is the change in enthalpy?", "-286 kJ/mol", "\u0394H = \u2212286 kJ/mol"),
        ("What is the voltage?", "12 kV", "12,000 V"),
        ("What is the voltage?", "12 kV", "12 kilovolts"),
        ("How fast is it?", "90 km/h", "25 m/s"),
        ("How fast is it?", "90 km/h", "90 kilometres per hour"),
        ("What did it cost?", "\u00a335", "35 pounds"),
        ("What did it cost?", "\u00a335", "\u00a335 a head"),
        ("What is the wage?", "14 euros an hour", "14 euros per hour"),
        ("What is the hourly wage?", "14 euros", "14 euros an hour"),
        ("When was the battle?", "490 BC", "in 490 BCE"),
        ("When was the battle?", "490", "AD 490"),
        ("How far south is it?", "-33", "33 degrees south"),
        ("What's the deficit?", "3 million", "-3 million"),
        ("What's the debt?", "-3 million", "3 million"),
        ("What concentration?", "0.5 mol/l", "0.5 M"),
        ("What activity?", "40 MBq", "40 megabecquerel"),
        ("How many?", "5", "5 km away there are 5 farms"),
        ("How much?", "$2.5 million", "2.5 million dollars"),
        ("What is the growth?", "12%", "0.12"),
        ("How many hours?", "8", "8 hours a day"),
        ("What is the boiling point?", "100 \u00b0C", "100 \u00b0C (212 \u00b0F)"),
        ("What is the boiling point?", "100 \u00b0C", "212 \u00b0F"),
        ("What time does it open?", "10 am", "10:00"),
        ("What time does it open?", "10 am", "10 o'clock"),
        ("What's the temperature in Kelvin of 0 \u00b0C?", "273.15 K", "273 K"),
        ("How long is a marathon?", "42.195 km", "26.2 miles"),
        ("How many followers?", "1.2M", "1.2 million"),
        ("What's the size?", "5 GB", "5 gigabytes"),
        ("What's the size?", "5 GB", "5gb"),
        ("What's the power?", "60 W", "60w"),
        ("What's the power?", "60 kW", "60 KW"),
        ("When did it end?", "AD 476", "476"),
        ("When did it end?", "476", "476 CE"),
        ("How long?", "3 hours", "3 hrs"),
        ("What is the charge of the ion?", "+2", "2+"),
        ("What is the charge of the ion?", "-2", "2-"),
        ("What's the longitude?", "74\u00b0 W", "-74"),
        ("What's the deficit of the club?", "-7", "seven goals"),
        ("What's the goal difference?", "+5", "5"),
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
        ("How tall is Ben?", "1.82 m", "He is taller than 1.82 m"),
        ("How tall is Ben?", "1.82 m", "5 cm short of 1.82 m"),
        ("How tall is Ben?", "1.82 m", "5 cm shorter than his father's 1.82 m"),
        ("How many beds has the hospital?", "420", "double the 420 it had before"),
        ("How many beds has the hospital?", "420", "420 fewer than the clinic in town"),
        ("How many beds has the hospital?", "420", "not quite 420"),
        ("How many beds has the hospital?", "420", "nowhere near 420"),
        ("How many beds has the hospital?", "420", "It exceeds 420."),
        ("How many beds has the hospital?", "420", "a quarter of the 420 in the plan"),
        ("How many beds has the hospital?", "420", "20% more than the old building's 420"),
        ("What year did he die?", "1832", "the year after 1832"),
        ("What year did he die?", "1832", "two years before 1832"),
        ("What year did he die?", "1832", "later than 1832"),
        ("What year did he die?", "1832", "not until after 1832"),
        ("How long did it take?", "3 hours", "three times the usual 3 hours"),
        ("How long did it take?", "3 hours", "an hour longer than the planned 3 hours"),
        ("How long did it take?", "3 hours", "anything but 3 hours"),
        ("Wie hoch ist der Turm?", "62 m", "h\u00f6her als 62 m"),
        ("Wie viele kamen?", "300", "weniger als 300"),
        ("Wie viele kamen?", "300", "die H\u00e4lfte der 300"),
        ("Combien ?", "40", "plus de 40"),
        ("Combien ?", "40", "deux fois plus que 40"),
        ("\u00bfCu\u00e1ntos?", "40", "m\u00e1s de 40"),
        ("\u00bfCu\u00e1ntos?", "40", "la mitad de 40"),
        ("What is the rate?", "5%", "It's 2 points above 5%"),
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
        ("How tall is Ben?", "1.82 m", "Ben, at 1.82 m, is taller than his 1.75 m father."),
        ("How many beds has the hospital?", "420", "420, twice as many as in 1990"),
        ("How many beds has the hospital?", "420", "After the extension it has 420 beds."),
        ("What year did he die?", "1832", "He died in 1832, two years after his wife."),
        ("What year did he die?", "1832", "1832 (before the reform of 1833)"),
        ("How many goals?", "3", "3 more goals came in the second half, so 3"),
        ("How long is the film?", "2 hours", "It's 2 hours long, longer than the first part."),
        ("How many pages?", "300", "The book has 300 pages or so"),
        ("How many?", "12", "no fewer than 12"),
        ("What is the interest?", "2%", "2% above the base rate of 1%"),
        ("By how much is A taller than B?", "5 cm", "A is 5 cm taller than B."),
        ("How much more does it cost?", "20 euros", "20 euros more than before"),
        ("How much less?", "20 euros", "It is 20 euros less than the other."),
        ("How far is the inn from the lake?", "3 km", "3 km past the lake"),
        ("When did it close?", "2012", "It closed after the 2012 season."),
        ("How old must you be?", "21", "over 21"),
        ("How many times bigger is it?", "4", "four times bigger than the Moon"),
        ("How many people live there?", "40,000", "about 40,000, fewer than in 1990"),
        ("When did it happen?", "1066", "In 1066, long before the printing press."),
        ("When was he born?", "1809", "He was born in 1809, the year after 1808"),
        ("When was the song released?", "1985", "It was released in 1985 and charted until after 1986."),
        ("How long did the Hundred Years' War last?", "116 years", "116 years, longer than its name says"),
        ("What is the highest score?", "147", "The highest possible score is 147, more than any other."),
        ("How many keys?", "88", "88 keys, 36 more than the 52 white ones"),
        ("How far?", "5 miles", "5 miles north of the city"),
        ("When did he retire?", "2010", "after the 2010 World Cup"),
        ("How many?", "7", "7 plus or minus 2"),
        ("What time?", "9:00", "9:00 or a bit later"),
        ("How many cards?", "52", "There are 52 cards, 54 with jokers"),
    ],
)
def test_a_value_that_is_stated_beside_a_comparison(question: str, reference: str, answer: str) -> None:
    assert doubts(question, answer, reference) == {"value_altered": 0.0, "value_compared": 0.0}


def test_one_reference_that_agrees_suffices() -> None:
    question = "How deep is the trench?"
    assert doubts(question, "11,000 m below sea level", "-11,000 m", "11,000 m below sea level")["value_altered"] == 0.0
    assert doubts(question, "11,000 m above sea level", "-11,000 m", "11,000 m below sea level")["value_altered"] == 1.0


def test_nothing_applies_to_a_reference_without_values() -> None:
    assert all(math.isnan(value) for value in doubts("Who won?", "6 \u00b0C", "Mary").values())
    assert math.isnan(doubts("Who won?", "6 \u00b0C", "Mary", "-6 \u00b0C")["value_compared"])
    assert all(math.isnan(value) for value in doubts("How cold is it?", "very cold", "-6 \u00b0C").values())


def test_a_decade_for_a_year_only_where_a_year_is_asked() -> None:
    assert doubts("In which year did it open?", "in the 1920s", "1926")["value_altered"] == 1.0
    assert doubts("When did it open?", "in the 1920s", "1926")["value_altered"] == 0.0


@pytest.mark.parametrize(
    ("answer", "altered"),
    [
        ("x = 7", 1.0),
        ("7", 1.0),
        ("x = 7 or x = -7", 0.0),
        ("\u00b17", 0.0),
        ("plus or minus 7", 0.0),
        ("7 and -7", 0.0),
    ],
)
def test_a_reference_with_both_signs_wants_both(answer: str, altered: float) -> None:
    assert doubts("Solve x^2 = 49.", answer, "7 and -7", "x = \u00b17")["value_altered"] == altered
    assert doubts("Solve x^2 = 49.", answer, "\\pm 7")["value_altered"] == altered


@pytest.mark.parametrize(
    ("answer", "references"),
    [
        ("Heat it to 220 \u00b0F.", ["220 \u00b0C", "220 degrees Celsius", "220"]),
        ("At 0 K", ["0 \u00b0C", "0", "zero"]),
        ("+$45", ["-$45", "minus 45 dollars", "45 dollars overdrawn"]),
        ("They gained \u22124.2 points, that is, they lost 4.2.", ["+4.2 points", "4.2 points"]),
        ("25 mg", ["25 micrograms", "25 mcg"]),
        ("90 mph", ["90 km/h", "90"]),
        ("5 euros", ["$5", "5"]),
        ("On Thursday at 2:15 pm.", ["Tuesday 14:15", "14:15", "quarter past two"]),
        ("At 7:30 in the morning.", ["19:30", "7:30 pm", "half past seven"]),
        ("From 1 pm to 9 pm.", ["9 am to 1 pm", "9:00 to 13:00"]),
        ("on Tuesday", ["Thursday"]),
        ("+1 e", ["\u22121", "negative", "-1 e"]),
    ],
)
def test_a_vaguer_reference_does_not_settle_what_another_one_says(answer: str, references: list[str]) -> None:
    assert doubts("Which one is it?", answer, *references)["value_altered"] == 1.0


@pytest.mark.parametrize(
    ("answer", "references"),
    [
        ("220", ["220 \u00b0C", "220"]),
        ("428 \u00b0F", ["220 \u00b0C", "220"]),
        ("5", ["-5", "5"]),
        ("5", ["+5", "5"]),
        ("45 dollars overdrawn", ["-$45", "45 dollars overdrawn"]),
        ("-4.2%", ["-4.2%", "4.2%"]),
        ("7:30", ["7:30 pm", "half past seven"]),
        ("2:15 pm", ["Tuesday 14:15", "14:15"]),
        ("Tuesday, quarter past two", ["Tuesday 14:15", "14:15"]),
        ("3 miles", ["3 miles", "3 km", "3"]),
        ("Tuesday to Thursday", ["Thursday"]),
        ("9 am to 1 pm", ["9 am to 1 pm", "9 to 1"]),
    ],
)
def test_a_vaguer_reference_settles_what_fits_the_others(answer: str, references: list[str]) -> None:
    assert doubts("Which one is it?", answer, *references)["value_altered"] == 0.0


def test_a_quoted_number_with_its_sign_asks_for_no_size() -> None:
    question = "How cold was it at the camp? (Diary: minus 27 \u00b0C)"
    assert doubts(question, "27 \u00b0C", "-27 \u00b0C")["value_altered"] == 1.0
    assert doubts(question, "27 degrees below zero", "-27 \u00b0C")["value_altered"] == 0.0


@pytest.mark.parametrize(
    ("reference", "answer", "altered"),
    [
        ("14 cents per minute", "14 cents a call", 1.0),
        ("14 cents per minute", "14 cents a minute", 0.0),
        ("14 cents per minute", "14 cents", 0.0),
        ("50 euros per week", "50 euros per person", 1.0),
        ("50 euros per week", "50 euros, a fair price", 0.0),
        ("20 Euro pro Stunde", "20 Euro pro Tag", 1.0),
        ("4\u03c0 cm\u00b2", "4\u03c0 cm", 1.0),
        ("4\u03c0 cm\u00b2", "4\u03c0 square centimetres", 0.0),
        ("4\u03c0 cm\u00b2", "4\u03c0", 0.0),
        ("4\u03c0", "4\u03c0 cm", 0.0),
        ("2", "Two pairs of wings.", 1.0),
        ("2 pairs", "Two pairs of wings.", 0.0),
        ("1,10 \u20ac", "1,10 centime", 1.0),
        ("1,10 \u20ac", "1.10 euros", 0.0),
    ],
)
def test_what_stands_behind_an_amount(reference: str, answer: str, altered: float) -> None:
    assert doubts("What is it?", answer, reference)["value_altered"] == altered


def test_a_reference_in_words_settles_the_answer_that_gives_it() -> None:
    assert math.isnan(doubts("What is the charge?", "negative, not +1", "-1", "negative")["value_altered"])
