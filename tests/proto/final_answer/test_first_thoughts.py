"""First thoughts and common beliefs, and history that only looks like them."""

import pytest

from gradewire_proto.final_answer import find_final_answer


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
        ("Häufig hört man eine falsche Antwort: Bonn; richtig ist Berlin.", "Berlin"),
        ("It would be a mistake to name Haydn; Mozart is the composer.", "Mozart"),
        ("You may have Chile in mind; it is Peru though.", "Peru"),
        ("Initially 40, then 32.", "32"),
        ("Many say 12.5. It is 13.5.", "13.5"),
        ("Сначала я подумал про железо, но это медь.", "медь"),
        ("Многие думают, что это Сидней, но это Канберра.", "Канберра"),
    ],
)
def test_a_first_thought_is_not_the_answer(completion: str, answer: str) -> None:
    assert find_final_answer(completion).text == answer


@pytest.mark.parametrize(
    "completion",
    [
        "The song was originally sung by The Larks in 1967. It was later covered by Ann Lee.",
        "“I Think It’s Over” is a song by Ann Lee, sung first in 1987. It became a hit.",
        "The league initially tried the rule for one season. Ann Lee is credited with the first goal.",
        "The first series is called Rain and it originally aired on May 20, 2003 on Channel 5.",
        "It looks like a dark beer. The foam on top is thick.",
        "She appears to be asking the man, a singer, in the video.",
        "It is the natural pacemaker of the heart, and it sends out signals.",
        "One would have to say 3.99 degrees.",
        "If somebody asks when it came out, one would have to say July 25, 2017.",
        "One would have to say 2,579 steps.",
    ],
)
def test_history_and_looks_are_no_first_thoughts(completion: str) -> None:
    assert find_final_answer(completion).position == "whole"


@pytest.mark.parametrize(
    ("completion", "answer"),
    [
        ("Most people guess Pluto. It is Neptune, however.", "Neptune"),
        ("Everybody says Edison. It was Tesla, though.", "Tesla"),
        ("Many believe it's Sydney. It's Canberra, actually.", "Canberra"),
        ("I thought it was 8. It's 9, though.", "9"),
    ],
)
def test_a_contrast_at_the_end_of_a_sentence_leaves_its_answer(completion: str, answer: str) -> None:
    assert find_final_answer(completion).text == answer
