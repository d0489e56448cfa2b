"""Samples like AVE's, from graded answers."""

from dataclasses import replace

import pytest
from tests.cli.bench.few_words import WORDS, FewWords

from gradewire_cli.bench.ave_making import (
    JudgedDescriptions,
    LabelledAnswer,
    MadeSamples,
    exact_match,
    make_samples,
    unfit,
)
from gradewire_stats.calibration.labelled_rows import half_of

ROW = LabelledAnswer(
    id="7",
    question="what animal lives in the desert",
    references=("a lizard", "the Gila Monster"),
    prediction="water-holding frog",
    label=0.0,
    dataset="nq",
)


def made(*answers: LabelledAnswer, seed: int = 0, judged: JudgedDescriptions | None = None) -> MadeSamples:
    return make_samples(answers, words=WORDS, thesaurus=FewWords(), seed=seed, judged=judged)


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
def test_an_answer_that_does_not_fit_has_a_reason(change: dict[str, str], reason: str) -> None:
    assert unfit(replace(ROW, **change), 5) == reason
    assert unfit(ROW, 5) == ""
    assert unfit(ROW, 1) == "the prediction has more than 1 words or 200 characters"


def test_a_judges_sentence_takes_the_place_of_the_first_description() -> None:
    other = replace(ROW, prediction="toad")
    judged = JudgedDescriptions({(ROW.question, ROW.prediction): "Frogs live there."}, "synthetic/1?judge=j")
    counted: list[int] = []
    found = make_samples([ROW, other], words=WORDS, thesaurus=FewWords(), judged=judged, done=counted.append)
    plain = made(ROW, other).rows
    first, second = found.rows
    assert first.descriptions == ("Frogs live there.", *plain[0].descriptions[1:])
    assert first.description_forms[0] == "judge"
    assert second.descriptions == plain[1].descriptions
    assert {row.made for row in found.rows} == {"gradewire ave stand-in 1, seed 0, judge synthetic/1?judge=j"}
    assert counted == [1, 2]


def test_columns_that_tell_questions_apart_stay() -> None:
    (row,) = made(replace(ROW, told_apart={"image": "7.jpg"})).rows
    assert row.columns["image"] == "7.jpg"
    assert set(row.columns) - set(made(ROW).rows[0].columns) == {"image"}


def test_rows_that_keep_their_references_are_counted() -> None:
    assert made(replace(ROW, references=("Tilda Swinton",)), ROW).kept_rows == 1


def test_references_that_exchange_their_forms_count_as_kept() -> None:
    found = made(replace(ROW, references=("3", "three")), replace(ROW, references=("3", "four")))
    assert [row.shifted_references for row in found.rows] == [("three", "3"), ("three", "4")]
    assert found.kept_rows == 1


def test_exact_match_is_squads() -> None:
    assert exact_match("The  U.S.A", ["usa"])
    assert exact_match("an apple", ["Apple", "pear"])
    assert not exact_match("apples", ["apple"])
    assert not exact_match("x", [])
