"""Tables that VLMEvalKit wrote: what becomes of each row, as one reads them by hand."""

import gzip
import json
import re
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.damaged_documents import check_rows, mangled

from gradewire_cli.problems import InputError
from gradewire_cli.rows.formats import Record
from gradewire_cli.rows.official import vlmevalkit
from gradewire_cli.rows.official.vlmevalkit import LOG, workbook_records

LOGS = Path(__file__).parents[3] / "support/harness_logs/vlmevalkit"
KINDS = ("xlsx", "tsv", "json")


def read(path: Path) -> list[Record]:
    return list(LOG.read(str(path)))


def told(records: list[Record], *names: str) -> list[tuple[Any, ...]]:
    return [tuple(record.fields.get(name) for name in names) for record in records if record.fields is not None]


def written(tmp_path: Path, **changes: Any) -> Path:
    whole = {"index": 4, "question": "Who?", "answer": "Ada", "prediction": "ada"} | changes
    path = tmp_path / "mine.json"
    path.write_text(json.dumps([{name: value for name, value in whole.items() if value is not ...}]))
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_letters_become_texts_and_failures_are_no_answers(kind: str) -> None:
    records = read(LOGS / f"table_GwChoices.{kind}")
    names = ("id", "question", "references", "prediction", "raw_response", "category", "choices")
    assert told(records, *names) == [
        ("table_GwChoices/1", "Which is a metal?", ["iron"], "iron", "B", "matter", ["oak", "iron", "wool"]),
        (
            "table_GwChoices/2",
            "Which is a fruit?",
            ["pear"],
            "The answer is A.",
            "The answer is A.",
            "food",
            ["pear", "brick"],
        ),
        ("table_GwChoices/3", "Which is a bird?", ["owl"], "owl", "C. owl", "animals", ["trout", "elk", "owl"]),
    ]
    assert (records[3].fields, records[3].problem) == (None, "has no answer: Failed to obtain answer via API.")
    assert [record.index for record in records] == list(range(4))


@pytest.mark.parametrize("kind", KINDS)
def test_free_answers_have_all_that_is_right(kind: str) -> None:
    names = ("id", "question", "references", "prediction", "choices", "vlmevalkit_category", "split")
    assert told(read(LOGS / f"table_GwQuestions.{kind}"), *names) == [
        (
            "table_GwQuestions/1",
            "What does the sign say?",
            ["stop", "STOP", "stop sign"],
            "STOP",
            None,
            "text",
            "",
        ),
        ("table_GwQuestions/2", "Which number is it?", "007", "7", None, "numbers", ""),
    ]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"answer": 3}, ("mine/4", "Who?", 3, "ada")),
        ({"answer": float("nan"), "answers": ["Ada"]}, ("mine/4", "Who?", ["Ada"], "ada")),
        ({"answer": ...}, ("mine/4", "Who?", None, "ada")),
        ({"answer": "[1, 2]"}, ("mine/4", "Who?", "[1, 2]", "ada")),
        ({"answer": "B"}, ("mine/4", "Who?", "B", "ada")),
        ({"A": "Ada", "B": None, "answer": "A"}, ("mine/4", "Who?", "A", "ada")),
        ({"A": 1, "B": 2, "answer": "B", "prediction": "(B)"}, ("mine/4", "Who?", ["2"], "2")),
        ({"index": None}, ("mine/0", "Who?", "Ada", "ada")),
        ({"question": ...}, ("mine/4", None, "Ada", "ada")),
    ],
)
def test_what_else_a_row_may_have(tmp_path: Path, changes: dict[str, Any], expected: tuple[Any, ...]) -> None:
    assert told(read(written(tmp_path, **changes)), "id", "question", "references", "prediction") == [expected]


@pytest.mark.parametrize(("said", "prediction"), [("B", "B"), ("B. A", "B"), ("So it is B.", "So it is B.")])
def test_letters_stay_where_a_text_is_another_options_letter(tmp_path: Path, said: str, prediction: str) -> None:
    """The labels in a diagram: "A", the text of option B, would be read as option A."""
    path = tmp_path / "model_AI2D.tsv"
    path.write_text(f"index\tquestion\tA\tB\tC\tanswer\tprediction\n1\tWhich?\tC\tA\tB\tB\t{said}\n", "utf-8")
    (row,) = LOG.read(str(path))
    assert row.fields is not None
    assert (row.fields["references"], row.fields["prediction"]) == (["B"], prediction)


def test_the_judgements_of_vlmevalkit_can_be_kept(tmp_path: Path) -> None:
    assert told(read(written(tmp_path, hit=1, log="ok")), "vlmevalkit_hit", "vlmevalkit_log") == [(1, "ok")]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.pkl", b"", r"predictions are \.xlsx, \.tsv or \.json"),
        ("a.json", b'[{"a": 1}]', "not a log from vlmevalkit: row 1 lacks index or prediction .its fields: a"),
        ("a.json", b'{"eval": {}, "plan": {}}', "a JSON file must contain a list of rows"),
        ("a.tsv", b"index\tanswer\n1\tx\n", "lacks index or prediction .its fields: index, answer"),
        ("a.xlsx", b"PK", "is not a workbook"),
    ],
)
def test_files_of_others_are_refused(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        read(path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.sampled_from(["table_GwChoices", "table_GwQuestions"]), st.data())
def test_mangled_tables_are_rows_problems_or_refused(tmp_path: Path, name: str, data: st.DataObject) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(data.draw(mangled(json.loads((LOGS / f"{name}.json").read_text())))))
    check_rows(LOG.read, path)
    for kind in ("tsv", "xlsx"):
        content = bytearray((LOGS / f"{name}.{kind}").read_bytes())
        for _ in range(data.draw(st.integers(1, 4))):
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
        broken = tmp_path / f"mine.{kind}"
        broken.write_bytes(bytes(content[: data.draw(st.integers(0, len(content)) | st.just(len(content)))]))
        check_rows(LOG.read, broken)


def test_a_table_may_be_gzipped(tmp_path: Path) -> None:
    plain = LOGS / "table_GwQuestions.tsv"
    path = tmp_path / f"{plain.name}.gz"
    path.write_bytes(gzip.compress(plain.read_bytes()))
    assert [record.fields for record in read(path)] == [record.fields for record in read(plain)]


@pytest.fixture
def book(tmp_path: Path) -> Path:
    path = tmp_path / "book.xlsx"
    written = openpyxl.Workbook()
    for line in (["index", "prediction", None], [1, "=2+3", "no name"], [2, None, None], [3.5, "x", None]):
        written.active.append(line)
    written.create_sheet("second").append(["other"])
    written.save(path)
    return path


def test_the_first_sheet_is_read_with_formulas_as_text(book: Path) -> None:
    """A model's answer that begins with = was written as a formula, and no program has computed it."""
    records = list(workbook_records(str(book)))
    assert [(record.index, record.position, record.fields) for record in records] == [
        (0, "row 2", {"index": 1, "prediction": "=2+3"}),
        (1, "row 3", {"index": 2, "prediction": None}),
        (2, "row 4", {"index": 3.5, "prediction": "x"}),
    ]


def changed(book: Path, change: Callable[[str], str]) -> str:
    """The same workbook with another text of its first sheet."""
    path = book.with_name("changed.xlsx")
    with zipfile.ZipFile(book) as source, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as target:
        for name in source.namelist():
            content = source.read(name)
            if name.endswith("/sheet1.xml"):
                before = content.decode()
                content = change(before).encode()
                assert content.decode() != before
            target.writestr(name, content)
    return str(path)


@pytest.mark.parametrize("size", ["A1", "A1:B2", "A1:XFD1048576", ""])
def test_what_a_sheet_says_of_its_size_leaves_no_row_out(book: Path, size: str) -> None:
    path = changed(book, lambda sheet: re.sub(r'<dimension ref="[^"]*"', f'<dimension ref="{size}"', sheet))
    assert list(workbook_records(path)) == list(workbook_records(str(book)))


@pytest.mark.parametrize("place", ["XFD{}", "ZZZ{}"])
@pytest.mark.parametrize("row", [1_000_000, 10**15])
def test_a_cell_far_away_takes_no_memory_for_what_lies_before_it(book: Path, place: str, row: int) -> None:
    cell = f'<row r="{row}"><c r="{place.format(row)}"><v>3</v></c></row></sheetData>'
    path = changed(book, lambda sheet: sheet.replace("</sheetData>", cell).replace("<dimension", "<was"))
    assert list(workbook_records(path)) == list(workbook_records(str(book)))


def test_empty_rows_are_none(tmp_path: Path) -> None:
    path = tmp_path / "gaps.xlsx"
    written = openpyxl.Workbook()
    for line in (["index", "prediction"], [None, None], [1, "x"], [None, None]):
        written.active.append(line)
    written.active["B9"] = None
    written.save(path)
    assert [(record.index, record.position) for record in workbook_records(str(path))] == [(0, "row 3")]


def test_without_openpyxl_the_ways_out_are_told(book: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(InputError, match=r"pip install 'gradewire\[xlsx\]'; or have VLMEvalKit write TSV"):
        list(workbook_records(str(book)))


def test_what_would_unpack_to_too_much_is_refused(book: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vlmevalkit, "MAX_UNPACKED_BYTES", 1000)
    with pytest.raises(InputError, match="would unpack to 0 MiB"):
        list(workbook_records(str(book)))


@pytest.mark.parametrize(("content", "message"), [(b"no zip", "is not a workbook"), (None, "No such file")])
def test_what_is_no_workbook_is_refused(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "book.xlsx"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        list(workbook_records(str(path)))


def test_an_archive_of_something_else_is_refused() -> None:
    log = Path(__file__).parents[3] / "support/harness_logs/inspect/eval/sums.eval"
    with pytest.raises(InputError, match="cannot be read as a workbook"):
        list(workbook_records(str(log)))


def test_a_column_that_is_named_twice_is_refused(tmp_path: Path) -> None:
    """The last one counted, without a word."""
    written = openpyxl.Workbook()
    for line in (["index", "prediction", "prediction"], [1, "first", "second"]):
        written.active.append(line)
    written.save(tmp_path / "twice.xlsx")
    with pytest.raises(InputError, match=r"twice\.xlsx: the header names prediction twice. Rename or remove one"):
        list(workbook_records(str(tmp_path / "twice.xlsx")))
