"""The CSV file of figures: a line a figure, numbers that read as they were computed."""

import csv
import io
import math

from hypothesis import given
from hypothesis import strategies as st

from gradewire_cli.results.table_formats import CSV_COLUMNS, to_tidy_csv
from gradewire_cli.results.tables import Table, Value, cells_mean, count, differing, estimated
from gradewire_stats.bootstrap import CellsMean, Difference, Estimate


def read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_every_cell_is_a_line_with_its_table_row_and_column() -> None:
    mean = CellsMean(0.5, math.nan, math.nan, 0, cells=7, cells_in_all=10)
    cells: list[Value | str] = [count(1490), estimated(Estimate(2 / 3, 0.6, 0.7, 100)), cells_mean(mean), "1 2 3"]
    table = Table("All, rows", ["metric", "rows", "nq\nfid", "mean", "failed"], [['a "b"', *cells]])
    found = read(to_tidy_csv([table]))
    assert tuple(found[0]) == CSV_COLUMNS
    assert {(line["table"], line["row"]) for line in found} == {("All, rows", 'a "b"')}
    assert [(line["column"], line["value"], line["low"], line["high"], line["text"]) for line in found] == [
        ("rows", "1490", "", "", "1490"),
        ("nq fid", "0.6666666666666666", "0.6", "0.7", "0.667 [.600, .700]"),
        ("mean", "0.5", "", "", "0.500 (7 of 10)"),
        ("failed", "", "", "", "1 2 3"),
    ]


def test_two_cells_may_name_a_row_and_differences_have_their_p() -> None:
    figure = differing(Difference(0.25, 0.125, 0.5, 100, 0.04))
    table = Table("Differences", ["", "", "all rows"], [["a minus b", "AUC", figure]], heads=2)
    (line,) = read(to_tidy_csv([table]))
    assert (line["row"], line["column"], line["value"], line["p_value"]) == (
        "a minus b, AUC",
        "all rows",
        "0.25",
        "0.04",
    )


def test_the_place_of_a_row_is_no_part_of_its_name() -> None:
    table = Table("Ratings", ["", "model", "Elo"], [["1", "gpt-4", count(1100)]], heads=2)
    (line,) = read(to_tidy_csv([table]))
    assert line["row"] == "gpt-4"


@given(st.floats(), st.text())
def test_numbers_come_back_as_they_were_and_any_name_keeps_its_place(value: float, name: str) -> None:
    table = Table(name, ["", "x"], [[name, Value("", value)]])
    (line,) = read(to_tidy_csv([table]))
    assert line["value"] == "" if not math.isfinite(value) else float(line["value"]) == value
    assert (line["table"], line["row"]) == (name, name)
