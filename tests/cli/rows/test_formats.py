"""Every format gives the same rows; what cannot be read is a row with a problem, and its neighbours are rows."""

import csv
import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet
from tests.support.examples import example_count

from gradewire_cli.problems import InputError
from gradewire_cli.rows.columns import RowOptions
from gradewire_cli.rows.formats import TEXT_CELLS, Format, Reading, Record, count_rows, format_of, read_file
from gradewire_cli.rows.row import Row, open_rows

# Everything that UTF-8 can hold; NUL, quotes, line ends and separators included. In CSV alone these say nothing.
NOTHING = {"nan", "<na>", "nat", "null", "\\n"}
TEXTS = st.text(st.characters(codec="utf-8"), max_size=20).filter(
    lambda text: text.strip().lower() not in NOTHING and not re.match(r"\s*(#|\d+\.0\s*$)", text)
)
FILLED = TEXTS.filter(bool)
TABLES = st.lists(
    st.fixed_dictionaries(
        {"id": FILLED, "question": TEXTS, "references": st.lists(TEXTS, min_size=1, max_size=3), "prediction": TEXTS}
    ),
    min_size=1,
    max_size=8,
)


def write(path: Path, format_: Format, table: list[dict[str, Any]]) -> Path:
    match format_:
        case "jsonl":
            path.write_text("".join(json.dumps(row) + "\n" for row in table), encoding="utf-8")
        case "json":
            path.write_text(json.dumps({"rows": table}, ensure_ascii=False), encoding="utf-8")
        case "csv":
            with path.open("w", newline="", encoding="utf-8") as stream:
                writer = csv.DictWriter(stream, list(table[0]))
                writer.writeheader()
                writer.writerows({**row, "references": json.dumps(row["references"])} for row in table)
        case "parquet":
            parquet.write_table(pa.Table.from_pylist(table), path)
    return path


def rows_of(path: Path, format_: Format, options: RowOptions | None = None) -> list[Row]:
    records = read_file(str(path), Reading(format_))
    return list(open_rows(str(path), records, options or RowOptions(), only_texts=format_ in TEXT_CELLS).rows)


@pytest.mark.parametrize("format_", ["jsonl", "json", "csv", "parquet"])
@given(table=TABLES)
@settings(max_examples=example_count(60), deadline=None)
def test_rows_come_back_as_they_were_written(
    format_: Format, table: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = write(tmp_path_factory.mktemp("rows") / "rows", format_, table)
    rows = rows_of(path, format_)
    assert [row.index for row in rows] == list(range(len(table)))
    for row, written in zip(rows, table, strict=True):
        assert row.item == written
        assert row.id == written["id"]
    assert count_rows(str(path), Reading(format_)) == len(table)


@given(table=TABLES)
@settings(max_examples=example_count(30), deadline=None)
def test_the_digest_does_not_depend_on_the_format(
    table: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("rows")
    digests = [
        [row.digest for row in rows_of(write(folder / format_, format_, table), format_)]
        for format_ in ("jsonl", "json", "csv", "parquet")
    ]
    assert digests[0] == digests[1] == digests[2] == digests[3]


@given(table=TABLES, field=st.sampled_from(["id", "question", "prediction"]), extra=FILLED)
@settings(max_examples=example_count(60), deadline=None)
def test_the_digest_changes_with_the_content(
    table: list[dict[str, Any]], field: str, extra: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("rows")
    before = rows_of(write(folder / "before", "jsonl", table), "jsonl")
    table[-1][field] += extra
    after = rows_of(write(folder / "after", "jsonl", table), "jsonl")
    assert [row.digest for row in before[:-1]] == [row.digest for row in after[:-1]]
    assert before[-1].digest != after[-1].digest


@given(data=st.binary(max_size=300))
@settings(max_examples=example_count(200), deadline=None)
def test_any_bytes_are_rows_or_an_input_error(data: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("rows") / "rows"
    for format_ in ("jsonl", "csv", "json"):
        path.write_bytes(data)
        try:
            records = list(read_file(str(path), Reading(format_)))
        except InputError as error:
            other = any(told in str(error) for told in (" is a", " is not utf-16", " has no rows"))
            assert other or format_ != "jsonl", "a line of JSONL fails alone"
            continue
        assert [record.index for record in records] == list(range(len(records)))
        assert all((record.fields is None) == bool(record.problem) for record in records)


GOOD = b'{"references": "a", "prediction": "b"}'


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b'{"references": "a", "prediction": "b"', "line 2 is not JSON"),
        (b'{"references": "\xff", "prediction": "b"}', "line 2 is not UTF-8"),
        (b'["a", "b"]', "line 2 must be an object, not list"),
        (b"1" * 5000, "line 2 is unreadable JSON"),
        (b"[" * 100_000, "line 2 is unreadable JSON"),
        (b'{"references": "a"}', "line 2 has no prediction (its columns: references)"),
        (b'{"prediction": "a", "references": null}', "line 2 has no references"),
    ],
)
def test_a_bad_line_fails_alone_and_says_where(line: bytes, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"\n".join([GOOD, line, b"", GOOD]))
    first, bad, last = rows_of(path, "jsonl")
    assert bad.item is None
    assert bad.problem.startswith(problem)
    assert (first.item, last.item) == (first.item, first.item | {"id": "2"})
    assert last.position == "line 4", "blank lines count as lines, not as rows"


def test_csv_rows_that_do_not_fit_fail_alone(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(b'answer,pred\nx,y\nx\nx,y,z\n"x" w,y\nx,\xff\n"two\nlines",y\n\nx,y\n')
    rows = rows_of(path, "csv")
    assert [row.problem for row in rows] == [
        "",
        "line 3 has 1 cells, but the header has 2",
        "line 4 has 3 cells, but the header has 2",
        "line 5 is not CSV: ',' expected after '\"'",
        "line 6 is not UTF-8. Save the file as UTF-8, or use --encoding",
        "",
        "",
    ]
    assert rows[-1].position == "line 10"
    assert rows[-1].item == {"id": "6", "references": ["x"], "prediction": "y"}


@pytest.mark.parametrize(
    ("cell", "references"),
    [("cat", ["cat"]), ('["cat", "kitten"]', ["cat", "kitten"]), ("[sic]", ["[sic]"]), ("", []), ("[1989]", ["1989"])],
)
def test_a_csv_cell_holds_a_text_or_a_json_list(cell: str, references: list[str], tmp_path: Path) -> None:
    path = write(tmp_path / "rows.csv", "csv", [{"references": [], "prediction": "x"}])
    with path.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([["references", "prediction"], [cell, "x"]])
    assert rows_of(path, "csv")[0].item == {"id": "0", "references": references, "prediction": "x"}


@pytest.mark.parametrize("references", ["references", "reference", "answers", "answer", "golden_answer"])
@pytest.mark.parametrize("prediction", ["prediction", "pred", "response", "candidate"])
@pytest.mark.parametrize("synthetic", ["synthetic_answers", "syn_ans"])
def test_aliases(references: str, prediction: str, synthetic: str, tmp_path: Path) -> None:
    path = write(tmp_path / "rows", "jsonl", [{references: "a", prediction: "b", synthetic: ["c"], "label": 1}])
    assert rows_of(path, "jsonl")[0].item == {
        "id": "0",
        "references": ["a"],
        "prediction": "b",
        "synthetic_answers": ["c"],
    }


@pytest.mark.parametrize(
    ("name", "value", "label"),
    [
        ("label", 1, 1.0),
        ("human_score", 0.25, 0.25),
        ("labels", [1, 0, 1, 1], 0.75),
        ("label", "1", 1.0),
        ("label", True, 1.0),
        ("label", "false", 0.0),
        ("labels", "[1, 0]", 0.5),
        ("label", "", None),
        ("label", None, None),
        ("label", "maybe", None),
        ("label", float("nan"), None),
        ("label", {}, None),
    ],
)
def test_labels(name: str, value: object, label: float | None, tmp_path: Path) -> None:
    path = write(tmp_path / "rows", "jsonl", [{"references": "a", "prediction": "b", name: value}])
    assert rows_of(path, "jsonl")[0].human.value == label


def test_missing_column_names_the_columns_there_are(tmp_path: Path) -> None:
    path = write(tmp_path / "rows", "jsonl", [{"references": "a", "said": "b"}])
    with pytest.raises(InputError, match=r"no column for prediction.*Columns: references, said.*--map prediction="):
        rows_of(path, "jsonl")
    with pytest.raises(InputError, match=r"no column 'out'\. Columns: references, said"):
        rows_of(path, "jsonl", RowOptions(columns={"prediction": "out"}))
    assert rows_of(path, "jsonl", RowOptions(columns={"prediction": "said"}))[0].item is not None


def test_where_keeps_the_row_numbers_of_the_file(tmp_path: Path) -> None:
    table = [{"references": "a", "prediction": "b", "model": model} for model in ("x", "y", "z", "x")]
    path = write(tmp_path / "rows", "jsonl", table)
    rows = rows_of(path, "jsonl", RowOptions(where={"model": frozenset({"x", "z"})}))
    assert [(row.index, row.model) for row in rows] == [(0, "x"), (2, "z"), (3, "x")]


def test_synthetic_answers_are_found_where_all_rows_have_them(tmp_path: Path) -> None:
    both = [{"references": "a", "prediction": "b", "syn_ans": ["c"]}, {"references": "a", "prediction": "b"}]
    for table, found in ((both, False), (both[:1], True), (both[1:], False)):
        path = write(tmp_path / "rows", "jsonl", table)
        records = read_file(str(path), Reading("jsonl"))
        assert open_rows(str(path), records, RowOptions(), only_texts=False).has_synthetic is found


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"{}", "list of rows"), (b"3", "list of rows"), (b'{"a": 1}\n{"a": 2}\n', "jsonl"), (b"\xff", "is not JSON")],
)
def test_json_that_is_no_table_is_an_input_error(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        list(read_file(str(path), Reading("json")))


def test_parquet_that_is_none_is_an_input_error(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    path.write_bytes(b"PAR1 not really")
    with pytest.raises(InputError, match="cannot be read as Parquet"):
        list(read_file(str(path), Reading("parquet")))


def test_missing_file_and_unknown_suffix_say_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        list(read_file(str(tmp_path / "rows.jsonl"), Reading("jsonl")))
    with pytest.raises(InputError, match="--input-format"):
        format_of("rows.txt", None)
    assert format_of("rows.txt", "csv") == "csv"
    assert format_of("-", None) == "jsonl"
    assert format_of("ROWS.PQ", None) == "parquet"


def test_a_big_file_is_read_as_it_is_needed(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes((GOOD + b"\n") * 10_000)
    records = read_file(str(path), Reading("jsonl"))
    taken = 0

    def counted() -> Any:
        nonlocal taken
        for record in records:
            taken += 1
            yield record

    rows = open_rows(str(path), counted(), RowOptions(), only_texts=False).rows
    assert isinstance(next(rows), Row)
    assert taken <= 64, "only the first rows are looked at before the first is handed out"


def test_record_of_an_unreadable_row_keeps_what_tells_it_apart(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"{broken\n{also broken\n")
    assert [type(record) for record in read_file(str(path), Reading("jsonl"))] == [Record, Record]
    rows = rows_of(path, "jsonl")
    assert rows[0].digest != rows[1].digest


def test_an_output_that_kept_its_columns_is_read_like_its_input(tmp_path: Path) -> None:
    row = {"id": "a", "question": "Q", "references": ["Paris"], "prediction": "paris", "label": 1}
    output = {"id": "a", "index": 0, "input": row, "scores": {}, "digest": "0" * 64}
    path = tmp_path / "scores.jsonl"
    path.write_text(json.dumps(output) + "\n")
    (read,) = read_file(str(path), Reading())
    assert read.fields == {**output, **row}
    # Without all of an output's columns, `input` is a column like others.
    path.write_text(json.dumps({**output, "scores": "0.5"}) + "\n")
    (read,) = read_file(str(path), Reading())
    assert read.fields == {**output, "scores": "0.5"}
