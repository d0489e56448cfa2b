"""The columns of a file: chosen once for all rows, refused if unclear, and named in what the command says."""

import csv
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from tests.cli.conftest import Command, write_rows

from gradewire.testing import StubTransport, echo_scores
from gradewire_cli.problems import InputError
from gradewire_cli.rows.columns import RowOptions
from gradewire_cli.rows.formats import Record
from gradewire_cli.rows.row import Row, open_rows
from gradewire_proto.v1 import scoring_pb2, types_pb2

Sent = list[types_pb2.Item]


def stub(sent: Sent) -> StubTransport:
    def score(request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
        sent.extend(request.items)
        return echo_scores(request, score=lambda _: 0.5)

    return StubTransport(score)


def rows_of(
    *fields: dict[str, Any], options: RowOptions | None = None, more: Sequence[dict[str, Any]] = ()
) -> list[Row]:
    """The rows of a file. `more` are rows behind those in which columns are looked for."""
    filled = [*fields, *(fields[-1:] * (64 - len(fields)) if more else ()), *more]
    records = [Record(index, f"line {index + 1}", each) for index, each in enumerate(filled)]
    return list(open_rows("a.jsonl", records, options or RowOptions(), only_texts=False).rows)


def texts(row: Row) -> tuple[Any, Any]:
    assert row.item is not None, row.problem
    return row.item["references"], row.item["prediction"]


def test_an_answer_beside_a_ground_truth_is_the_prediction(command: Command, tmp_path: Path) -> None:
    path = write_rows(tmp_path / "rag.jsonl", [{"question": "q", "answer": "Oslo", "ground_truth": "Bergen"}])
    sent: Sent = []
    done = command("score", path, stub=stub(sent))
    assert done.exit_code == 0
    assert [(item.question, list(item.references), item.prediction) for item in sent] == [("q", ["Bergen"], "Oslo")]
    assert "columns: references from ground_truth, prediction from answer. To read other columns, use" in done.stderr
    plain = write_rows(tmp_path / "plain.jsonl", [{"question": "q", "prediction": "Oslo", "ground_truth": "Bergen"}])
    assert "columns:" not in command("score", plain, stub=stub(sent)).stderr


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "parquet"])
def test_unclear_columns_are_refused_with_options_that_work(command: Command, tmp_path: Path, suffix: str) -> None:
    table = [{"question": "q", "answer": "Oslo", "gold answer": "Bergen", "output": "Voss"}]
    path = tmp_path / f"rows.{suffix}"
    if suffix == "jsonl":
        write_rows(path, table)
    elif suffix == "parquet":
        parquet.write_table(pa.Table.from_pylist(table), path)
    else:
        with path.open("w", newline="") as stream:
            writer = csv.DictWriter(stream, list(table[0]))
            writer.writeheader()
            writer.writerows(table)
    sent: Sent = []
    done = command("score", path, stub=stub(sent))
    assert (done.exit_code, done.stdout, sent) == (2, "", [])
    said = " ".join(done.stderr.split())
    assert "answer could be the references or the prediction" in said
    assert "Columns: question, answer, gold answer, output" in said
    ways = said.partition("Use ")[2].split(", or ")
    assert len(ways) == 3
    for way in ways:
        assert command("score", path, *shlex.split(way), stub=stub(sent)).exit_code == 0
    assert [(item.references[0], item.prediction) for item in sent] == [
        ("Bergen", "Voss"),
        ("Bergen", "Oslo"),
        ("Oslo", "Voss"),
    ]


def test_a_given_column_has_no_second_field() -> None:
    row = {"question": "q", "answer": "Oslo", "golden_answer": "Bergen"}
    assert texts(*rows_of(row, options=RowOptions({"prediction": "answer"}))) == (["Bergen"], "Oslo")
    with pytest.raises(InputError, match=r"no column for prediction .*Columns: question, answer, golden_answer\."):
        rows_of(row, options=RowOptions({"references": "answer"}))
    with pytest.raises(InputError, match="no column for references"):
        rows_of({"references": "a", "id": "x"}, options=RowOptions({"prediction": "references"}))


def test_an_answer_alone_could_be_either() -> None:
    with pytest.raises(InputError) as error:
        rows_of({"question": "q", "answer": "Oslo"})
    assert "answer could be the references or the prediction" in str(error.value)
    assert "--map references=answer --map prediction=COLUMN" in str(error.value)
    assert "--map references=COLUMN --map prediction=answer" in str(error.value)


def test_two_fields_from_one_column_are_refused(command: Command, tmp_path: Path) -> None:
    path = write_rows(tmp_path / "rows.jsonl", [{"a": "x", "b": "y"}])
    done = command("score", path, "--map", "references=a", "--map", "prediction=a")
    assert done.exit_code == 2
    assert "--map references=a and --map prediction=a read two fields from one column" in " ".join(done.stderr.split())
    assert command("score", path, "--map", "references=a", "--map", "prediction=b", "--map", "id=a").exit_code == 0


def test_a_column_has_one_field_in_all_rows() -> None:
    whole, part = {"answer": "a", "prediction": "b"}, {"answer": "c"}
    first, second = rows_of(whole, part)
    assert texts(first) == (["a"], "b")
    assert second.problem == "line 2 has no prediction (its columns: answer)"
    with pytest.raises(InputError, match="answer could be the references or the prediction"):
        rows_of(whole, {"answer": "c", "gold": "d"})


def test_rows_of_different_layouts_are_read_each_by_its_own() -> None:
    rows = rows_of({"references": "a", "prediction": "b"}, {"gold": "c", "response": "d"}, {"gold": "e", "pred": None})
    assert [texts(row) for row in rows] == [(["a"], "b"), (["c"], "d"), (["e"], "")]


def test_a_later_row_with_unclear_columns_fails_alone() -> None:
    usual = {"answer": "a", "ground_truth": "b"}
    *_, unclear, other, last = rows_of(
        usual, more=[{**usual, "response": "c"}, {"answer": "a", "prediction": "c"}, {"references": "d", "pred": "e"}]
    )
    for row in (unclear, other):
        assert row.item is None
        assert "has columns that the first rows lack: " in row.problem
        assert "answer could be the references or the prediction" in row.problem
    assert texts(last) == (["d"], "e")


def test_the_references_of_concatenated_tables_are_those_that_are_filled() -> None:
    rows = rows_of({"references": None, "answers": ["a"], "prediction": "b"}, {"references": ["c"], "prediction": "d"})
    assert [texts(row) for row in rows] == [(["a"], "b"), (["c"], "d")]


@pytest.mark.parametrize("other", ["response", "answer"])
def test_a_null_prediction_never_becomes_another_column(other: str) -> None:
    row = {"references": ["a"], "prediction": None, other: "a"}
    assert texts(*rows_of(row)) == (["a"], "")
    assert rows_of({"references": ["a"], "prediction": "b"}, {"references": ["a"]})[1].item is None, "no answer at all"


def test_a_column_of_objects_is_refused_with_what_is_in_it() -> None:
    row = {
        "inputs": {"q": "x"},
        "outputs": {"text_out": "b", "steps": 3},
        "reference_outputs": {"value": "a", "n": [1]},
    }
    with pytest.raises(
        InputError, match=r"column reference_outputs contains objects.*--map references=reference_outputs\.value$"
    ):
        rows_of(row)
    options = RowOptions({"references": "reference_outputs.value"})
    flat = {**row, "reference_outputs.value": "a"}
    with pytest.raises(InputError, match=r"column outputs contains objects.*Use --map prediction=outputs\.text_out$"):
        rows_of(flat, options=options)
    talk = [{"role": "user", "content": "q"}]
    with pytest.raises(InputError, match=r"column user_input contains lists.*--map question=user_input\.0\.content"):
        rows_of({"user_input": talk, "response": "a", "reference": "b"})


def test_a_missing_column_is_looked_for_inside_others() -> None:
    with pytest.raises(InputError, match=r"no column for references .*Use --map references=meta\.info\.ground_truth$"):
        rows_of({"meta": {"style": "x", "info": {"ground_truth": "a"}}, "prediction": "b"})


def notes_of(fields: dict[str, Any], options: RowOptions | None = None) -> str:
    records = [Record(0, "line 1", fields)]
    return " ".join(open_rows("a.jsonl", records, options or RowOptions(), only_texts=False).notes)


def test_a_column_that_may_be_the_question_is_named() -> None:
    row = {"references": "a", "prediction": "b"}
    assert "--map question=input" in notes_of({**row, "input": "q"})
    assert "--map question=prompt.0.content" in notes_of({**row, "prompt": [{"role": "user", "content": "q"}]})
    assert not notes_of(row)
    assert not notes_of({**row, "input": "q", "question": "r"})
    assert not notes_of({**row, "input": "q"}, RowOptions({"question": "input"}))


def test_prepared_references_are_read_by_the_same_rule(command: Command, tmp_path: Path) -> None:
    path = write_rows(tmp_path / "rows.jsonl", [{"question": "q", "answer": "a", "gold": "b", "output": "c"}])
    done = command("prepare", path)
    assert done.exit_code == 2
    assert re.search(r"--map references=gold\b", done.stderr)


def test_agreement_reads_columns_by_the_same_rule(command: Command, tmp_path: Path) -> None:
    table = [{"answer": "a", "gold": "b", "output": "c", "label": 1}]
    done = command("agree", write_rows(tmp_path / "rows.jsonl", table), "--metrics", "rouge_l")
    assert done.exit_code == 2
    assert "could be the references or the prediction" in done.stderr
