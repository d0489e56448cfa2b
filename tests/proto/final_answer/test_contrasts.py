"""Contrasts in five languages and more."""

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
        ("The kelvin? No, that is temperature. The joule.", "The joule"),
        ("Bern? Certainly not. Basel.", "Basel"),
        ("Verdi? No, he wrote Aida. Puccini.", "Puccini"),
        ("Helium? No. Argon makes up more of it.", "Argon makes up more of it."),
        ("Geneva? No, that's the Red Cross. It is in Basel.", "in Basel"),
        ("Kahn? That isn't who did it. Lehmann saved it.", "Lehmann saved it"),
        ("The liver does not do this, the kidney does.", "the kidney"),
        ("King Henry didn't rule then, King John did.", "King John"),
        ("Sound waves can't do that. Only light waves can.", "Only light waves"),
        ("No, not risotto. Polenta", "Polenta"),
        ("It is false that it was Amundsen; the first man was Scott", "the first man was Scott"),
        ("Calcium it isn't, so iron.", "iron"),
        ("It wasn't Kubrick. Ridley Scott directed it.", "Ridley Scott directed it."),
        ("not a mammal, a reptile", "a reptile"),
        ("It's the left one; the right one isn't.", "the left one"),
        ("Sydney, not Canberra.", "Sydney"),
        ("91 rather than 97", "91"),
        ("FTP, in contrast to SFTP.", "FTP"),
        ("mass (weight is the distractor here)", "mass"),
        ("While Sydney is bigger, it is Canberra.", "Canberra"),
        ("Unlike reptiles, birds are warm-blooded.", "birds"),
        ("Unlike the ribs, the skull protects it.", "the skull protects it"),
        ("Unlike an artery, a vein does that.", "a vein"),
        ("It is on the table, not on the floor.", "on the table"),
        ("neither red nor blue but green", "green"),
    ],
)
def test_what_is_denied_or_explained_away_is_left_out(completion: str, answer: str) -> None:
    assert find_final_answer(completion).text.rstrip(".") == answer.rstrip(".")


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
        "It is a hit song. It was later sung by others, and it was not a single.",
        "The tower was not tall. It has two floors and a small garden.",
        "Nathaniel wrote the tale. He is a clerk who arrives by ferry.",
        "The film starred Ann Lee instead of Joe Ray, and Tom Fox.",
        "They do not touch the other paths, they are still closed.",
        "The team did not lose, it was beaten.",
        "Yes, not really.",
        "The wall cracked because the ice had to have room, but it did not.",
        "It was not popular. Critics disliked the film.",
        "It returns None, True, False, 0.",
        "If it wasn't Maria, it was someone else.",
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
