"""Sentence pairs as rows: what follows is right; questions about a changed passage have two answers."""

import json
from pathlib import Path

import pytest

from gradewire_train import TrainingError
from gradewire_train.rows.labelled import read_rows
from gradewire_train.rows.row import GraderRow
from gradewire_train.rows.sentence_pairs import SENTENCE_PAIRS

PASSAGE = "Bees live in hives. They rarely sting people. Honey is sweet."


def lines(path: Path, *rows: object) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def table(path: Path, *rows: str) -> Path:
    path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    return path


def pair(label: str, second: str = "A man sleeps.") -> dict[str, str]:
    return {"sentence1": "A man is asleep.", "sentence2": second, "gold_label": label}


def question(passage: str, label: str) -> dict[str, object]:
    return {
        "original passage": PASSAGE, "original sentence": "They rarely sting people.", "sentence1": passage,
        "sentence2": "Do bees sting people often?", "label": label, "SampleID": 7,
    }  # fmt: skip


@pytest.mark.parametrize(("label", "right"), [("entailment", 1.0), ("neutral", 0.0), ("contradiction", 0.0)])
def test_an_answer_is_right_if_it_follows(label: str, right: float, tmp_path: Path) -> None:
    (row,) = read_rows(lines(tmp_path / "pairs.jsonl", pair(label)))
    assert row == GraderRow("pairs.jsonl, line 1", "", ("A man is asleep.",), "A man sleeps.", right, SENTENCE_PAIRS)


def test_a_pair_without_an_agreed_label_is_left_out(tmp_path: Path) -> None:
    rows = read_rows(lines(tmp_path / "pairs.jsonl", pair("-"), pair("entailment")))
    assert [row.id for row in rows] == ["pairs.jsonl, line 2"]


@pytest.mark.parametrize(
    "columns", [("sentence1", "sentence2"), ("ori_sentence", "new_sentence")], ids=["usual names", "HELP's names"]
)
def test_a_table_is_read_by_the_names_of_its_columns(columns: tuple[str, str], tmp_path: Path) -> None:
    path = table(
        tmp_path / "pairs.tsv",
        "\t".join(("index", *columns, "gold_label")),
        'a\tNo "dog" barks.\tNo black dog barks.\tentailment',
        'b\tNo black dog barks.\tNo "dog" barks.\tneutral',
    )
    rows = read_rows(path)
    assert [(row.references, row.prediction, row.label) for row in rows] == [
        (('No "dog" barks.',), "No black dog barks.", 1.0),
        (("No black dog barks.",), 'No "dog" barks.', 0.0),
    ]


def test_a_question_about_a_changed_passage_asks_the_changed_sentence(tmp_path: Path) -> None:
    changed = "Bees live in hives. They often sting people. Honey is sweet."
    path = lines(tmp_path / "q.jsonl", question(changed, "YES"), question(PASSAGE, "NO"), question(PASSAGE, "more"))
    rows = read_rows(path)
    assert [(row.references[0], row.prediction, row.label) for row in rows] == [
        ("They often sting people.", "Yes.", 1.0),
        ("They often sting people.", "No.", 0.0),
        ("They rarely sting people.", "Yes.", 0.0),
        ("They rarely sting people.", "No.", 1.0),
    ]
    assert {row.question for row in rows} == {"Do bees sting people often?"}
    assert len({row.id for row in rows}) == 4


def test_a_half_keeps_pairs_which_have_no_question(tmp_path: Path) -> None:
    path = lines(tmp_path / "pairs.jsonl", pair("entailment"), pair("neutral"))
    assert read_rows(path, half="a") == read_rows(path, half="b") == read_rows(path)


@pytest.mark.parametrize(
    ("row", "says"),
    [
        (pair("maybe"), "line 2: gold_label must be one of entailment, neutral, contradiction, -, not 'maybe'"),
        (pair("neutral", " "), "line 2: a sentence is blank"),
        ({"sentence1": "A", "sentence2": "B"}, "line 2: gold_label is missing"),
        ({**pair("neutral"), "sentence2": 3}, "line 2: sentence2 must be a valid string"),
    ],
)
def test_what_is_wrong_is_named_by_line_and_field(row: object, says: str, tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=says):
        read_rows(lines(tmp_path / "pairs.jsonl", pair("neutral"), row))


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (("a\tb", "x\ty"), "lacks columns: gold_label and sentence1, sentence2 or ori_sentence, new_sentence"),
        (("sentence1\tsentence2\tgold_label", "x\ty"), "line 2: fewer columns than the first line has"),
        (("sentence1\tsentence2\tgold_label", "x\ty\twhat"), "line 2: gold_label must be one of"),
        (("sentence1\tsentence2\tgold_label",), "has no row"),
    ],
)
def test_what_is_wrong_with_a_table_is_named(rows: tuple[str, ...], says: str, tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=says):
        read_rows(table(tmp_path / "pairs.tsv", *rows))


def test_a_table_that_is_no_text_is_an_error_and_no_crash(tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(TrainingError, match=r"cannot read .*Use a table with tabs in UTF-8"):
        read_rows(tmp_path / "pairs.tsv")
