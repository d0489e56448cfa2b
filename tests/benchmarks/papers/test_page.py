import re
from pathlib import Path

import pytest
from benchmarks.common.measurements import with_block
from benchmarks.papers import page as module
from benchmarks.papers.page import PAGE, Comparison, Papers

PAPERS = Papers.read()
# Tables with measured values; table 1 of KNVQA and of VisIT-Bench, for example, have none.
PRINTED_TABLES = {
    "smile": {"1", "2", "3", "4", "5", "6", "7"},
    "sfve": {"1", "2", "3"},
    "lave": {"2", "3", "8", "9"},
    "knvqa": {"2", "3", "4", "5"},
    "visit-bench": {"2", "3", "4"},
}
ABOUT = {
    "papers": {
        "one": {
            "name": "One",
            "tables": {
                "1": {"title": "correlation", "scale": 100},
                "2": {"title": "size", "scale": 1, "absolute": True},
            },
        }
    },
    "sources": {
        "own": {"page": "own.md", "section": "Own", "anchor": "own", "data": "ten rows", "command": "make own"},
    },
    "reasons": {"data": "other data"},
    "not_reproduced": [{"paper": "one", "table": "table 3", "rows": "all", "reason": "nobody has it"}],
}


def compared(table: str, printed: tuple[str, ...], column: str = "Pearson") -> Comparison:
    return Comparison("one", table, "smile", "all", printed, "own", ("", "smile", (column,)), ("data",))


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "## Own\n\n| metric | Pearson | size |\n|---|---|---|\n| smile | 0.5 [.25, 0.755] | 0.125 |\n"
    (tmp_path / "own.md").write_text(text, "utf-8")
    monkeypatch.setattr(module, "RESULTS", tmp_path)


@pytest.mark.usefixtures("results")
def test_a_line_has_both_values_in_the_papers_scale_and_their_difference() -> None:
    papers = Papers(ABOUT, [compared("1", ("47.4",)), compared("2", ("-0.10", "0.30"), "size")])
    lines = papers.page().splitlines()
    assert "### One, table 1: correlation" in lines
    source = lines.index("Ours: [ten rows](../../benchmarks/results/own.md#own),")
    assert lines[source + 1] == "by `make own`."
    assert "| smile | all | 47.4 | 50.0 [25.0, 75.5] | +2.6 | data |" in lines
    # The mean of sizes, not of signed values; 0.125 is rounded to even.
    assert "| smile | all, mean of 2 | 0.20 | 0.12 | -0.08 | data |" in lines
    assert "| One, table 3 | all | nobody has it |" in lines
    assert "- **data**: other data" in lines


@pytest.mark.usefixtures("results")
def test_a_value_without_all_scores_says_so(tmp_path: Path) -> None:
    text = "## Own\n\n| metric | failed | Pearson |\n|---|---|---|\n| smile | 3 | 0.5 [.25, 0.755] |\n"
    (tmp_path / "own.md").write_text(text, "utf-8")
    page = Papers(ABOUT, [compared("1", ("47.4",))]).page()
    assert "| smile | all | 47.4 | 50.0 [25.0, 75.5], 3 failed | +2.6 | data |" in page


def test_the_page_is_what_the_program_writes() -> None:
    text = PAGE.read_text("utf-8")
    assert with_block(text, "comparisons", PAPERS.page()) == text, "run python -m benchmarks.papers --page"


def test_every_line_of_the_page_has_both_values_a_difference_and_a_reason() -> None:
    block = PAPERS.page().partition("### Not reproduced")[0]
    lines = [line for line in block.splitlines() if line.startswith("|") and not line.startswith(("| row", "|---"))]
    assert len(lines) == len(PAPERS.comparisons)
    number = r"-?\d+(\.\d+)?"
    ours = rf"{number}( \[{number}, {number}\])?(, \d+ failed)?"
    for line in lines:
        assert re.fullmatch(
            rf"\| [^|]+ \| [^|]+ \| {number} \| {ours} \| [+-]{number[2:]} \| [^|]+ \|",
            line,
        ), line


def test_values_of_the_answers_stand_in_the_tables() -> None:
    answers = PAGE.read_text("utf-8").partition("## Which printed")[2].partition("\n## ")[0]
    values = re.findall(r"(?<![\w.])\d+\.\d+(?![\w.]*\])", answers)
    assert len(values) > 10
    shown = set(re.findall(r"(?<![\w.])\d+\.\d+", PAPERS.page()))
    for value in values:
        assert any(each == value or each.rstrip("0") == value for each in shown), value


def test_sources_reasons_and_tables_are_described_and_used() -> None:
    about = PAPERS.about
    assert {each.source for each in PAPERS.comparisons} == set(about["sources"])
    assert {reason for each in PAPERS.comparisons for reason in each.reasons} == set(about["reasons"])
    named = {(key, number) for key, paper in about["papers"].items() for number in paper["tables"]}
    assert {(each.paper, each.table) for each in PAPERS.comparisons} == named
    for source in about["sources"].values():
        assert source["data"]
        assert re.match(r"(python -m benchmarks|make|gradewire)\b", source["command"])


def test_every_printed_table_is_compared_or_says_why_not() -> None:
    for paper, tables in PRINTED_TABLES.items():
        compared_tables = {each.table.partition(",")[0] for each in PAPERS.comparisons if each.paper == paper}
        left_out = {
            number
            for each in PAPERS.about["not_reproduced"]
            if each["paper"] == paper and each["reason"] and each["rows"]
            for number in numbers_in(each["table"])
        }
        assert compared_tables <= tables
        assert compared_tables | left_out == tables, paper


def test_printed_values_are_written_alike_in_a_line() -> None:
    for each in PAPERS.comparisons:
        decimals = {len(value.partition(".")[2]) for value in each.printed}
        assert len(decimals) == 1, each


def numbers_in(text: str) -> set[str]:
    found = {
        str(number) for first, last in re.findall(r"(\d) to (\d)", text) for number in range(int(first), int(last))
    }
    return found | set(re.findall(r"\d", text))
