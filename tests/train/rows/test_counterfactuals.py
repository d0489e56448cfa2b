"""Answers with one place changed: the label turns with the place, and nothing else changes."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_train.material import GRADED
from gradewire_train.rows.counterfactuals import COUNTERFACTUAL, counterfactuals
from gradewire_train.rows.row import DRAWN, GraderRow
from gradewire_train.texts.lexicon import Lexicon

NAMES = ("Ann Lee", "Bob Ray", "Cid May", "Dora Fox", "Eve Hill", "Finn Roe", "Gus Orr", "Hal Poe")
TOWNS = ("Paris", "Rome", "Oslo", "Bern", "Riga", "Lyon", "Cork", "Graz")


def row(number: int, question: str, reference: str, prediction: str, label: float = 1.0) -> GraderRow:
    return GraderRow(f"r{number}", question, (reference,), prediction, label, "own")


ROWS = [
    *(row(n, f"Who wrote book {n}?", name, f"I think that {name} wrote it.") for n, name in enumerate(NAMES)),
    *(row(20 + n, f"Where is tower {n}?", town, f"It stands in {town}.") for n, town in enumerate(TOWNS)),
    *(row(40 + n, f"Who wrote song {n}?", name, "Somebody else.", 0.0) for n, name in enumerate(NAMES)),
    *(row(60 + n, f"What happens in {n}?", "It will increase slowly.", "it will increase, yes") for n in range(6)),
]


@pytest.fixture(scope="module")
def made(lexicon: Lexicon) -> dict[str, list[GraderRow]]:
    found: dict[str, list[GraderRow]] = {}
    for each in counterfactuals(ROWS, 150, lexicon, seed=1):
        found.setdefault(each.id.rpartition(" ")[2], []).append(each)
    return found


def original(changed: GraderRow) -> GraderRow:
    name = changed.id.partition(" ")[0]
    return next(each for each in ROWS if each.id == name)


def test_every_kind_is_made_of_both_labels_and_none_repeats(made: dict[str, list[GraderRow]]) -> None:
    assert set(made) == {"exchanged", "taken_back", "corrected", "denied", "opposite"}
    for kind, rows in made.items():
        assert {each.label for each in rows} == {0.0, 1.0}, kind
    every = [each for rows in made.values() for each in rows]
    assert len({(each.question, each.references, each.prediction) for each in every}) == len(every)
    assert {each.source for each in every} == {COUNTERFACTUAL}
    labels = Counter(each.label for each in every)
    assert 0.35 < labels[1.0] / labels.total() < 0.65


def test_an_exchanged_value_is_of_the_same_shape_and_the_sentence_stays(made: dict[str, list[GraderRow]]) -> None:
    for each in made["exchanged"]:
        before = original(each)
        values = NAMES if before.question.startswith("Who") else TOWNS
        other = next(value for value in values if value in each.prediction)
        assert other != before.references[0]
        assert each.prediction == before.prediction.replace(before.references[0], other)
        assert (each.label == 1) == (each.references == (other,)), "right only if the new value is the reference"
        assert each.label == 1 or each.references == before.references


def test_what_is_taken_back_turns_the_label(made: dict[str, list[GraderRow]]) -> None:
    for each in made["taken_back"]:
        before = original(each)
        assert each.label == 1 - before.label
        assert each.prediction.startswith(before.prediction)
        assert (before.references[0] in each.prediction.removeprefix(before.prediction)) == (each.label == 1)


def test_a_correction_decides_for_one_of_two(made: dict[str, list[GraderRow]]) -> None:
    for each in made["corrected"]:
        values = NAMES if each.question.startswith("Who") else TOWNS
        said = [value for value in values if value in each.prediction]
        assert each.references[0] in said
        (other,) = (value for value in said if value != each.references[0])
        right, wrong = (each.references[0], other) if each.label else (other, each.references[0])
        assert each.prediction in {form.format(said=right, wrong=wrong) for form in GRADED["corrections"]}


def test_a_denial_is_wrong_and_a_doubt_right(made: dict[str, list[GraderRow]]) -> None:
    for each in made["denied"]:
        forms = GRADED["doubts" if each.label else "denials"]
        assert each.prediction in {form.format(each.references[0]) for form in forms}


def test_an_opposite_is_wrong_unless_the_reference_says_it_too(made: dict[str, list[GraderRow]]) -> None:
    assert {(each.label, each.references[0], each.prediction) for each in made["opposite"]} == {
        (0.0, "It will increase slowly.", "it will decrease, yes"),
        (1.0, "It will decrease slowly.", "it will decrease, yes"),
    }


def test_drawn_rows_grades_between_and_rows_without_a_question_are_left_alone(lexicon: Lexicon) -> None:
    rows = [replace(ROWS[0], source=DRAWN), replace(ROWS[1], label=0.5), replace(ROWS[2], question="")]
    assert counterfactuals(rows, 10, lexicon, seed=1) == []
    assert counterfactuals(ROWS, 0, lexicon, seed=1) == []


@given(st.permutations([*ROWS, replace(ROWS[0], question="Who wrote the other one?")]), st.integers(0, 3))
def test_the_order_of_rows_does_not_matter_and_the_seed_does(
    lexicon: Lexicon, shuffled: list[GraderRow], seed: int
) -> None:
    found = counterfactuals(shuffled, 12, lexicon, seed=seed)
    assert found == counterfactuals(sorted(shuffled, key=str), 12, lexicon, seed=seed)
    assert found != counterfactuals(shuffled, 12, lexicon, seed=seed + 1)
    assert len(found) == 12
