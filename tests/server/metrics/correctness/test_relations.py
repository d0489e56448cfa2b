"""Sentences with one relation changed: a negation, an antonym, or roles exchanged; and those that say the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_server.metrics.correctness.relations import relation_features
from gradewire_server.metrics.correctness.words import FeatureText


def relations_of(prediction: str, *references: str, question: str = "") -> dict[str, float]:
    """Return the features of one answer."""
    asked = FeatureText.of(question).distinct
    return relation_features([FeatureText.of(each) for each in references], FeatureText.of(prediction), asked)


NEGATED = [
    ("The law was passed.", "The law was not passed."),
    ("The patient may drink alcohol.", "The patient must not drink alcohol."),
    ("The door is not locked.", "The door is locked."),
    ("Everyone came, including Tom.", "Everyone except Tom came."),
    ("He smoked.", "He never smoked."),
    ("The train stopped.", "The train failed to stop."),
    ("Oil is more dense than syrup.", "Oil is less dense than syrup."),
    ("The tank is leaking.", "The tank is no longer leaking."),
    ("It warms the plate and does touch it.", "It warms the plate but does not touch it."),
]
ANTONYM = [
    ("It goes down.", "It goes up."),
    ("The pressure goes down.", "The pressure rises."),
    ("It falls.", "The pressure rises."),
    ("It slows down the reaction.", "It speeds up the reaction."),
    ("You turn the screw to the right.", "The screw is turned to the left."),
    ("The fuse melts when the current is too low.", "The fuse melts when the current is too high."),
    ("Under high pressure it boils at a lower temperature.", "It boils at a higher temperature under pressure."),
    ("The king abdicated after the war began.", "The king abdicated before the war began."),
    ("The valve opens.", "The valve closes."),
    ("All of us breathe in the gas.", "We breathe out the gas."),
    ("Gold is lighter than silver.", "Gold is heavier than silver."),
    ("The road is finished.", "The road is unfinished."),
    ("Nadal lost to Federer in five sets.", "Nadal beat Federer."),
    ("Anna bought the car from Ben.", "Anna sold the car to Ben."),
    ("The battery receives energy from the lamp.", "The battery supplies energy to the lamp."),
    ("Chile imports copper from China.", "Chile exports copper to China."),
]
EXCHANGED = [
    ("The rabbit hunts the eagle.", "The eagle hunts the rabbit."),
    ("The eagle is hunted by the rabbit.", "The eagle hunts the rabbit."),
    ("Caesar murdered Brutus.", "Caesar was murdered by Brutus."),
    ("Japan exports wine to France.", "France exports wine to Japan."),
    ("Silver is heavier than gold.", "Gold is heavier than silver."),
    ("Alexander was the father of Philip.", "Philip was Alexander's father."),
    ("Bob gave Alice a book.", "Alice gave Bob a book."),
    ("Heat flows from the cold body to the hot body.", "Heat flows from the hot body to the cold body."),
    ("Cold air rises and warm air sinks.", "Warm air rises and cold air sinks."),
    ("Die Katze jagt den Hund.", "Der Hund jagt die Katze."),
    ("Der Mieter zahlt sie dem Vermieter zurück.", "Der Vermieter zahlt sie dem Mieter zurück."),
    ("Auguste a été adopté par Tibère.", "Auguste a adopté Tibère."),
    ("Federer won against Nadal.", "Nadal beat Federer."),
    ("Nadal was defeated by Federer.", "Nadal beat Federer."),
    ("Ben lent money to Anna.", "Anna lent Ben money."),
    ("Ben lent Anna money.", "Anna lent money to Ben."),
    ("Anna was lent money by Ben.", "Anna lent Ben money."),
    ("Omar is the taller one.", "Ben is taller than Omar."),
    ("Coffee is cheaper.", "Tea is cheaper than coffee."),
    ("Bayern wurde von Dortmund besiegt.", "Bayern besiegte Dortmund."),
    ("Roma fue vencida por Cartago.", "Roma venció a Cartago."),
]
ALIKE = [
    ("The law failed to pass.", "The law was not passed."),
    ("The patient must avoid drinking alcohol.", "The patient must not drink alcohol."),
    ("The door isn't open, it is locked.", "The door is locked."),
    ("The door is not unlocked.", "The door is locked."),
    ("The shop is not only open but busy.", "The shop is open."),
    ("It was opened not in Rome but in Milan Central.", "It was opened in Milan Central."),
    ("The pressure goes up.", "The pressure rises."),
    ("Silver is lighter than gold.", "Gold is heavier than silver."),
    ("Silver is less heavy than gold.", "Gold is heavier than silver."),
    ("The rabbit is hunted by the eagle.", "The eagle hunts the rabbit."),
    ("Brutus murdered Caesar.", "Caesar was murdered by Brutus."),
    ("Alexander's father was Philip.", "Philip was the father of Alexander."),
    ("John is the brother of Mary.", "Mary is John's sister."),
    ("To Japan France exports wine.", "France exports wine to Japan."),
    ("Italy lost 4-0 to Spain.", "Spain defeated Italy 4-0."),
    ("The company was bought by Nokia.", "The company was sold to Nokia."),
    ("Federer lost to Nadal in five sets.", "Nadal beat Federer."),
    ("Nadal won against Federer.", "Nadal beat Federer."),
    ("The lamp receives energy from the battery.", "The battery supplies energy to the lamp."),
    ("Anna lent Ben money.", "Anna lent money to Ben."),
    ("To Ben Anna lent money.", "Anna lent Ben money."),
    ("Tibère a été adopté par Auguste.", "Auguste a adopté Tibère."),
    ("Dem Mieter zahlt sie der Vermieter zurück.", "Der Vermieter zahlt sie dem Mieter zurück."),
    ("Rotkäppchen rettete der Jäger.", "Der Jäger rettete Rotkäppchen."),
    ("Du saut à ski et du ski de fond.", "Le ski de fond et le saut à ski"),
    ("Ben is the taller one.", "Ben is taller than Omar."),
    ("Unlike coffee, it is cheaper.", "Tea is cheaper than coffee."),
    ("Coffee costs more.", "Tea is cheaper than coffee."),
    ("Dortmund wurde von Bayern besiegt.", "Bayern besiegte Dortmund."),
    ("It was written by Andrew Wright and Calvin Lewis.", "Calvin Lewis and Andrew Wright"),
    ("Omar is the shorter one.", "Ben is taller than Omar."),
    ("When the current is too high, the fuse melts.", "The fuse melts when the current is too high."),
    ("Cold air sinks and warm air rises.", "Warm air rises and cold air sinks."),
    ("blue, white and red", "red, white and blue"),
    ("366 or more", "at least 366"),
    ("Baroque music came before Romantic music.", "Romantic music came after Baroque music."),
]


@pytest.mark.parametrize(("prediction", "reference"), NEGATED)
def test_a_negation_more_or_less(prediction: str, reference: str) -> None:
    assert relations_of(prediction, reference)["negated"] == 1.0


@pytest.mark.parametrize(("prediction", "reference"), ANTONYM)
def test_an_antonym_in_the_place_of_a_word(prediction: str, reference: str) -> None:
    assert relations_of(prediction, reference)["antonym"] == 1.0


@pytest.mark.parametrize(("prediction", "reference"), EXCHANGED)
def test_roles_exchanged(prediction: str, reference: str) -> None:
    assert relations_of(prediction, reference)["exchanged"] == 1.0


@pytest.mark.parametrize(("prediction", "reference"), ALIKE)
def test_the_same_in_other_words(prediction: str, reference: str) -> None:
    assert all(value != 1.0 for value in relations_of(prediction, reference).values())


def test_one_reference_that_says_the_same_is_enough() -> None:
    assert relations_of("The path is not closed", "The path is closed")["negated"] == 1.0
    assert relations_of("The path is not closed", "The path is closed", "There is no closed path")["negated"] == 0.0


@pytest.mark.parametrize(
    ("prediction", "references"),
    [
        ("Maya was overtaken by Lena.", ["Maya overtook Lena", "Maya passed Lena"]),
        ("The Earth orbits the Moon.", ["the Moon orbits the Earth", "The Moon"]),
        (
            "The construction company sued the city.",
            ["the city sued the builder", "the city sued the construction company"],
        ),
        (
            "Plato was taught by Aristotle.",
            ["Plato taught Aristotle", "Aristotle was Plato's pupil", "Plato was the teacher"],
        ),
    ],
)
def test_exchanged_roles_are_not_cleared_by_a_reference_with_fewer_of_the_words(
    prediction: str, references: list[str]
) -> None:
    assert relations_of(prediction, *references)["exchanged"] == 1.0
    assert relations_of(prediction, *reversed(references))["exchanged"] == 1.0


@pytest.mark.parametrize(
    ("prediction", "references"),
    [
        ("Lena was overtaken by Maya.", ["Maya overtook Lena", "Maya passed Lena"]),
        ("The Moon, of course.", ["the Moon orbits the Earth", "The Moon"]),
        ("The Earth is orbited by the Moon.", ["the Moon orbits the Earth", "The Moon"]),
        ("Leo was hired by Marta.", ["Marta hired Leo", "Leo was hired by Marta"]),
    ],
)
def test_a_reference_in_the_same_roles_clears(prediction: str, references: list[str]) -> None:
    assert set(relations_of(prediction, *references).values()) == {0.0}


def test_after_a_negative_question_a_negation_changes_nothing() -> None:
    question = "Which big race did she not win?"
    assert relations_of("She never won the New York race.", "the New York race", question=question)["negated"] == 0.0


@pytest.mark.parametrize(("prediction", "reference"), [("Paris", "yes"), ("no", "yes"), ("It rains.", "A cat sleeps.")])
def test_other_sentences_are_not_compared(prediction: str, reference: str) -> None:
    assert set(relations_of(prediction, reference).values()) == {0.0}


@given(st.text(max_size=80), st.text(min_size=1, max_size=80).filter(str.strip))
def test_any_text_can_be_compared(prediction: str, reference: str) -> None:
    answer = FeatureText.of(prediction or "x")
    found = relation_features([FeatureText.of(reference)], answer, frozenset())
    assert {0.0, 1.0}.issuperset(found.values())
    assert relation_features([FeatureText.of(reference)], FeatureText.of(reference), frozenset())["negated"] != 1.0
