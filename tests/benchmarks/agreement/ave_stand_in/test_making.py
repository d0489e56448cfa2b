"""The stand-in, from labelled rows."""

from dataclasses import replace

import pytest
from benchmarks.agreement.ave_stand_in import LabelledAnswer, StandIn, exact_match, stand_in
from tests.benchmarks.agreement.ave_stand_in.words import WORDS, FewWords

from gradewire_stats.calibration.labelled_rows import half_of

ROW = LabelledAnswer(
    id="7",
    question="what animal lives in the desert",
    references=("a lizard", "the Gila Monster"),
    prediction="water-holding frog",
    label=0.0,
    dataset="nq",
)


def made(*answers: LabelledAnswer, seed: int = 0, max_words: int = 5) -> StandIn:
    return stand_in(answers, words=WORDS, thesaurus=FewWords(), seed=seed, max_words=max_words)


def test_a_row_has_its_three_parts_and_says_how_they_were_made() -> None:
    found = made(ROW)
    (row,) = found.rows
    assert (row.id, row.question, row.references) == (ROW.id, ROW.question, ROW.references)
    assert (row.prediction, row.label, row.dataset) == (ROW.prediction, ROW.label, ROW.dataset)
    assert row.shifted_references == ("lizards", "the Gila Monster")
    assert row.shifts == ("plural", "kept")
    assert len(row.descriptions) == 3
    assert row.half == half_of(ROW.question)
    assert row.made == "gradewire ave stand-in 1, seed 0"
    assert (dict(found.shifts), found.kept_rows) == ({"plural": 1, "kept": 1}, 0)


def test_the_same_seed_gives_the_same_row_in_any_company() -> None:
    others = [replace(ROW, id=str(number), prediction=f"frog {number}") for number in range(20)]
    alone, among = made(ROW).rows, made(*others[:10], ROW, *others[10:]).rows
    assert among[10] == alone[0]
    assert made(ROW, seed=1).rows[0].descriptions != alone[0].descriptions
    assert len({row.descriptions[0].replace(row.prediction, "") for row in among}) > 1


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"prediction": "A Lizard!"}, "the prediction is an exact match of a reference"),
        ({"prediction": " \t"}, "the prediction is empty"),
        ({"prediction": "one two three four five six"}, "the prediction has more than 5 words or 200 characters"),
        ({"prediction": "x" * 10**6}, "the prediction has more than 5 words or 200 characters"),
    ],
)
def test_rows_that_do_not_fit_are_left_out_and_counted(change: dict[str, str], reason: str) -> None:
    found = made(ROW, replace(ROW, **change), replace(ROW, **change))
    assert len(found.rows) == 1
    assert dict(found.left_out) == {reason: 2}


def test_rows_that_keep_their_references_are_counted() -> None:
    assert made(replace(ROW, references=("Tilda Swinton",)), ROW).kept_rows == 1


def test_exact_match_is_squads() -> None:
    assert exact_match("The  U.S.A", ["usa"])
    assert exact_match("an apple", ["Apple", "pear"])
    assert not exact_match("apples", ["apple"])
    assert not exact_match("x", [])
