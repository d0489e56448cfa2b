"""Workbooks: cells as they were typed, and what is none or too much."""

import re
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import openpyxl
import pytest

from gradewire.cli.input.official import workbook
from gradewire.cli.input.official.workbook import workbook_records
from gradewire.cli.problems import InputError


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
    assert [(record.index, record.place, record.fields) for record in records] == [
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
    assert [(record.index, record.place) for record in workbook_records(str(path))] == [(0, "row 3")]


def test_without_openpyxl_the_ways_out_are_told(book: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(InputError, match=r"pip install 'gradewire\[xlsx\]'; or have VLMEvalKit write TSV"):
        list(workbook_records(str(book)))


def test_what_would_unpack_to_too_much_is_refused(book: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workbook, "MAX_UNPACKED_BYTES", 1000)
    with pytest.raises(InputError, match="would unpack to 0 MiB"):
        list(workbook_records(str(book)))


@pytest.mark.parametrize(("content", "message"), [(b"no zip", "is no workbook"), (None, "No such file")])
def test_what_is_no_workbook_is_refused(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "book.xlsx"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        list(workbook_records(str(path)))


def test_an_archive_of_something_else_is_refused() -> None:
    log = Path(__file__).parents[4] / "support/harness_logs/inspect/eval/sums.eval"
    with pytest.raises(InputError, match="cannot be read as a workbook"):
        list(workbook_records(str(log)))


def test_a_column_that_is_named_twice_is_refused(tmp_path: Path) -> None:
    """The last one counted, without a word."""
    written = openpyxl.Workbook()
    for line in (["index", "prediction", "prediction"], [1, "first", "second"]):
        written.active.append(line)
    written.save(tmp_path / "twice.xlsx")
    with pytest.raises(InputError, match=r"twice\.xlsx: the header names prediction twice: leave one out"):
        list(workbook_records(str(tmp_path / "twice.xlsx")))
