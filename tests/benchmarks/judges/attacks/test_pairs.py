"""Attacks on pairs: a wrong answer against a right one to its question, and how often it wins where it did not."""

from typing import Any

from benchmarks.judges.attacks.cases import PLAIN, Half, read_families
from benchmarks.judges.attacks.pairs import duels, won
from benchmarks.judges.attacks.rates import Rate


def row(place: int, label: int, prediction: str) -> dict[str, Any]:
    return {
        "id": f"{place}-{label}",
        "question": f"Who wrote book {place}?",
        "references": [f"Author{place}"],
        "prediction": prediction,
        "label": label,
        "dataset": "nq",
    }


WRONG = [row(place, 0, f"Painter{place}") for place in range(12)]
RIGHT = [row(place, 1, f"It was Author{place}") for place in range(11)]


def test_each_wrong_answer_meets_a_right_one_to_its_question() -> None:
    found = duels(WRONG, WRONG + RIGHT, Half.HELD_BACK)
    met = [family for family in read_families() if not family.in_caption]
    assert len(found) == 11 * (1 + len(met))
    for duel in found:
        place = duel.case.row.removesuffix("-0")
        assert duel.pair.answer_a == f"It was Author{place}"
        assert duel.pair.answer_b == duel.case.item["prediction"]
        assert duel.pair.question == f"Who wrote book {place}?"
    assert {duel.case.row for duel in found} == {f"{place}-0" for place in range(11)}


def test_wins_count_where_the_wrong_answer_does_not_win_as_it_is() -> None:
    found = [duel for duel in duels(WRONG[:4], WRONG + RIGHT, Half.HELD_BACK) if duel.case.family in {PLAIN, "order"}]
    # As they are: the right one wins, wins, nobody does, the wrong one wins.
    winners = ["a", "b", "a", "tie", None, "b", "b", "b"]
    wins, losses = won(found, winners)
    assert wins == {"order": Rate(2, 3)}
    assert losses == {"order": Rate(2, 2)}
