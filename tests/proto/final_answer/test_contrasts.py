"""Contrasts and first thoughts in five languages and more."""

import pytest

from gradewire_proto.final_answer import find_final_answer
from gradewire_proto.final_answer.contrasts import contrast


@pytest.mark.parametrize(
    ("completion", "answer"),
    [
        ("Don't use a list, use a set.", "a set"),
        ("Do not multiply by 3; multiply by 4.", "by 4"),
        ("You must not add water, you must add oil.", "oil"),
        ("Nimm nicht den Bus, nimm die Bahn.", "die Bahn"),
        ("Man sagt nicht „wegen dem“, man sagt „wegen des“.", "wegen des"),
        ("N'utilisez pas le marteau, utilisez la clé.", "la clé"),
        ("No uses jabón, usa vinagre.", "vinagre"),
        ("Non usare il coltello, usa le forbici.", "le forbici"),
        ("不要用糖，用蜂蜜。", "蜂蜜"),
    ],
)
def test_a_verb_that_is_said_again_has_the_true_object(completion: str, answer: str) -> None:
    assert find_final_answer(completion).text == answer


@pytest.mark.parametrize(
    ("completion", "answer"),
    [
        ("It's Austria, not Australia.", "Austria"),
        ("The bird is a raven, rather than a crow.", "a raven"),
        ("The painting hangs in the Prado and not in the Louvre.", "in the Prado"),
        ("Es war der Gärtner und nicht der Koch.", "der Gärtner"),
        ("C'est un oiseau et non un mammifère.", "un oiseau"),
        ("El país es Austria, no Australia.", "Austria"),
        ("The thief wasn't the gardener; the thief was the nephew.", "the nephew"),
        ("Nicht Mozart, sondern Salieri hat es komponiert.", "Salieri"),
        ("Statt 20 Euro sind es 25 Euro.", "25 Euro"),
        ("鲸鱼并不是鱼，它是哺乳动物。", "哺乳动物"),
    ],
)
def test_what_is_rejected_is_left_out(completion: str, answer: str) -> None:
    assert find_final_answer(completion).text == answer


@pytest.mark.parametrize(
    ("completion", "answer"),
    [
        ("Many assume the capital is Auckland. It's actually Wellington.", "Wellington"),
        ("My initial estimate was 200. The real figure is 175.", "175"),
        ("Although Edison comes to mind first, the patent went to Joseph Swan.", "Joseph Swan"),
        ("One is inclined to answer Rio. Brasília, however, has been the capital since 1960.", "Brasília"),
        ("It's natural to think of gold first. The densest metal, though, is osmium.", "osmium"),
        ('My knee-jerk answer was "yes", but on inspection the statement is false.', "false"),
        ("My guess was 40; it turned out to be 44.", "44"),
        ("Fast jeder nennt hier Edison; es war aber Göbel.", "Göbel"),
        ("On croit souvent que c'est Nice. C'est Marseille.", "Marseille"),
        ("Muchos confunden la orca con una ballena. Es un delfín.", "un delfín"),
        ("一般人都会猜上海，其实首都是北京。", "北京"),
        ("Многие думают, что это Сидней, но это Канберра.", "Канберра"),
    ],
)
def test_a_first_thought_is_not_the_answer(completion: str, answer: str) -> None:
    assert find_final_answer(completion).text == answer


@pytest.mark.parametrize(
    "completion",
    [
        "Many birds migrate south in autumn, but robins often stay.",
        "She thought that the letter was lost, but it had been delivered.",
        "Elle a d'abord vécu à Nantes, puis à Rennes.",
        "Most people live in cities; few live on farms.",
        "Er spielte nicht Geige, aber er sang sehr gut.",
        "They did not sign the contract.",
        "Don't use X-rays during pregnancy unless necessary.",
        "No Country for Old Men",
        "很多人喜欢春天，因为天气暖和。",
    ],
)
def test_a_sentence_without_a_contrast_stays_whole(completion: str) -> None:
    assert find_final_answer(completion).text == completion
    assert find_final_answer(completion).position == "whole"


def test_the_span_begins_with_the_true_part_and_ends_with_the_given_end() -> None:
    text = "It is not red, but green. More text."
    found = contrast(text, 0, 24)
    assert found is not None
    assert text[slice(*found)] == "green"
    assert contrast("It is green.", 0, 12) is None
