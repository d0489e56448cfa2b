"""Rows for a grader: read with errors that name line and field, split by question, weighed by source."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_stats.calibration.labelled_rows import half_of
from gradewire_train import TrainingError
from gradewire_train.rows.labelled import read_rows
from gradewire_train.rows.row import DRAWN, GraderRow, at_most, best_references, fold_of, rows_digest, weights

ROW = {"id": "1", "question": "Who?", "references": ["Ann Lee", "Lee"], "prediction": "It was Lee.", "label": 1}


def write(path: Path, *rows: object) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def test_the_reference_with_most_of_its_words_in_the_answer_comes_first(tmp_path: Path) -> None:
    (row,) = read_rows(write(tmp_path / "own.jsonl", ROW))
    assert row == GraderRow("1", "Who?", ("Lee", "Ann Lee"), "It was Lee.", 1.0, "own")
    assert best_references(["a b", "c", "a"], "a a b", most=2) == ("a b", "a")
    # Each time that a word stands there counts: three of four against one of two.
    assert best_references(["no so", "no no no so"], "no no no", most=1) == ("no no no so",)


def test_several_labels_are_a_soft_one_and_a_dataset_is_a_source(tmp_path: Path) -> None:
    rows = read_rows(write(tmp_path / "own.jsonl", {**ROW, "labels": [1, 0, 1], "dataset": "nq", "id": None}))
    assert rows[0].label == pytest.approx(2 / 3)
    assert (rows[0].source, rows[0].id) == ("nq", "own.jsonl, line 1")


def test_a_pair_that_differs_in_one_place_is_two_rows(tmp_path: Path) -> None:
    pair = {"question": "Who?", "references": ["Ann", "Bob"], "answer": "Ann.", "changed": "Bob? No.", "label": 0}
    kept = {**pair, "id": "x", "changed": "It was Ann.", "label": 1, "dataset": "mine"}
    assert read_rows(write(tmp_path / "flips.jsonl", pair, kept)) == [
        GraderRow("flips.jsonl, line 1 answer", "Who?", ("Ann", "Bob"), "Ann.", 1.0, "flips"),
        GraderRow("flips.jsonl, line 1 changed", "Who?", ("Bob", "Ann"), "Bob? No.", 0.0, "flips"),
        GraderRow("x answer", "Who?", ("Ann", "Bob"), "Ann.", 1.0, "mine"),
        GraderRow("x changed", "Who?", ("Ann", "Bob"), "It was Ann.", 1.0, "mine"),
    ]
    with pytest.raises(TrainingError, match="line 2: changed must be a valid string, not None"):
        read_rows(write(tmp_path / "flips.jsonl", pair, {**pair, "changed": None}))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"question": None}, "line 2: question must be a valid string, not None"),
        ({"references": []}, "line 2: references must have at least 1 item, not "),
        ({"references": ["a", 3]}, "line 2: references.1 must be a valid string, not 3"),
        ({"label": 2}, "line 2: label must be less than or equal to 1, not 2"),
        ({"label": None}, "line 2: label must be a number from 0"),
        ({"labels": [1, "0"]}, "line 2: labels.1 must be a valid number"),
        ({"prediction": "\ud800"}, "line 2: Invalid JSON: unexpected end of hex escape"),
    ],
)
def test_what_is_wrong_is_named_by_line_and_field(change: dict[str, object], says: str, tmp_path: Path) -> None:
    path = write(tmp_path / "own.jsonl", ROW, {**ROW, **change})
    with pytest.raises(TrainingError, match=says):
        read_rows(path)


def test_a_half_has_its_questions_alone(tmp_path: Path) -> None:
    path = write(tmp_path / "own.jsonl", *({**ROW, "question": f"who is {number}"} for number in range(30)))
    halves = {half: {row.question for row in read_rows(path, half=half)} for half in ("a", "b")}
    assert all(half_of(question) == half for half, asked in halves.items() for question in asked)
    assert len(halves["a"] | halves["b"]) == 30
    one = write(tmp_path / "one.jsonl", {**ROW, "question": min(halves["b"])})
    with pytest.raises(TrainingError, match="has no row in half a"):
        read_rows(one, half="a")


@given(st.text(max_size=20), st.integers(2, 9))
def test_every_question_is_in_one_fold_however_it_is_written(question: str, folds: int) -> None:
    assert 0 <= fold_of(question, folds) < folds
    assert fold_of(f"  {question}?", folds) == fold_of(question, folds)


def test_a_row_without_a_question_is_in_the_fold_of_its_reference() -> None:
    pairs = [GraderRow("", "", (f"sentence {number}",), "p", 1.0, "s") for number in range(40)]
    assert {fold_of(row.asked, 2) for row in pairs} == {0, 1}
    assert GraderRow("", "q", ("r",), "p", 1.0, "s").asked == "q"


def test_sources_weigh_the_same_and_drawn_kinds_share_their_part() -> None:
    def row(source: str, kind: str = "") -> GraderRow:
        return GraderRow("", "q", ("r",), "p", 1.0, source, kind)

    rows = [row("nq"), row("nq"), row("nq"), row("tq"), row(DRAWN, "x"), row(DRAWN, "y"), row(DRAWN, "y")]
    found = weights(rows, drawn_share=0.4)
    assert sum(found) == pytest.approx(len(rows))
    assert sum(found[:3]) == pytest.approx(found[3]) == pytest.approx(0.3 * 7)
    assert found[4] == pytest.approx(sum(found[5:])) == pytest.approx(0.2 * 7)
    assert weights(rows[:4], drawn_share=0.4) == pytest.approx([2 / 3] * 3 + [2])
    assert weights(rows[4:], drawn_share=0.4) == pytest.approx([1.5, 0.75, 0.75])


@given(st.permutations(range(12)), st.integers(0, 3))
def test_at_most_so_many_rows_of_a_source_are_kept_whatever_their_order(order: list[int], seed: int) -> None:
    rows = [GraderRow(f"{n}", "q", ("r",), "p", 1.0, "few" if n < 3 else "many") for n in order]
    found = at_most(rows, 4, seed=seed)
    assert [row for row in rows if row in found] == found
    assert sum(row.source == "few" for row in found) == 3
    assert sum(row.source == "many" for row in found) == 4
    assert {row.id for row in found} == {row.id for row in at_most(sorted(rows, key=lambda row: row.id), 4, seed=seed)}
    assert at_most(rows, 0, seed=seed) == rows


def test_another_seed_keeps_other_rows() -> None:
    rows = [GraderRow(f"{n}", "q", ("r",), "p", 1.0, "many") for n in range(100)]
    kept = [{row.id for row in at_most(rows, 10, seed=seed)} for seed in range(2)]
    assert kept[0] != kept[1]


def test_the_digest_is_of_all_that_is_read() -> None:
    rows = [GraderRow("1", "q", ("r",), "p", 1.0, "s"), GraderRow("1", "q", ("r",), "p", 0.0, "s")]
    assert rows_digest(rows[:1]) != rows_digest(rows[1:]) != rows_digest(rows)
