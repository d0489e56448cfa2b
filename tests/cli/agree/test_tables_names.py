"""Names of data sets, models and groups in the tables of `agree`."""

import json
from pathlib import Path

from tests.cli.conftest import Command, write_rows
from tests.cli.judged import judging_stub, rows_of


def test_rows_without_data_set_or_model_do_not_pass_for_all_rows(command: Command, tmp_path: Path) -> None:
    rows = [{**row, **({"dataset": "", "model": None} if index < 12 else {})} for index, row in enumerate(rows_of(60))]
    file, page = write_rows(tmp_path / "rows.jsonl", rows), tmp_path / "tables.md"
    options = ("--resamples", "100", "--group-by", "cell", "--group-by", "dataset", "--group-by", "model", "--details")
    done = command("agree", file, "--metrics", "rouge_l,sbert", *options, "--markdown", page, stub=judging_stub())
    assert done.exit_code == 0, done.output
    text = page.read_text()
    tables = dict(block.removeprefix("**").split("**", 1) for block in text.split("\n\n**"))
    names = {
        "data set and model": ["(none) (none)", "nq big", "nq small", "tq big", "tq small"],
        "data set": ["(none)", "nq", "tq"],
        "model": ["(none)", "big", "small"],
    }
    for by, each in names.items():
        assert f"\n| metric | {' | '.join(each)} |\n" in tables[f"Pearson by {by}"]
        lines = [line.strip("| ").split(" | ") for line in tables[f"sbert by {by}"].splitlines()[4 : 4 + len(each)]]
        assert [line[0] for line in lines] == each
        assert lines[0][1] == "12"
    assert next(line for line in tables["All rows"].splitlines() if "sbert" in line).startswith("| sbert | 60 |")


def test_a_column_that_no_row_has_is_not_named(command: Command, tmp_path: Path) -> None:
    rows = [{key: value for key, value in row.items() if key != "model"} for row in rows_of(40)]
    file, page = write_rows(tmp_path / "rows.jsonl", rows), tmp_path / "tables.md"
    assert command("agree", file, "--metrics", "rouge_l,sbert", "--resamples", "100", "--markdown", page).exit_code == 0
    assert "| metric | nq | tq |" in page.read_text()
    assert "(none)" not in page.read_text()


def test_names_that_hold_bars_do_not_break_markdown(command: Command, tmp_path: Path) -> None:
    rows = [{**row, "dataset": "a|b\nc"} for row in rows_of(20)]
    file, page = write_rows(tmp_path / "rows.jsonl", rows), tmp_path / "tables.md"
    assert command("agree", file, "--metrics", "rouge_l,sbert", "--resamples", "100", "--markdown", page).exit_code == 0
    row = next(line for line in page.read_text().splitlines() if "a\\|b" in line)
    assert "a\\|b c" in row


def test_hostile_names_are_printed_and_written(command: Command, tmp_path: Path) -> None:
    names = ["\ud800", "a\x1b[31mred", "[bold]x[/bold]", "b" * 500]
    rows = [
        {**row, "dataset": names[index % 4], "model": "", "flags": [names[index % 4], str(index)]}
        for index, row in enumerate(rows_of(80))
    ]
    file, page = write_rows(tmp_path / "rows.jsonl", rows), tmp_path / "tables.md"
    options = ("--metrics", "rouge_l,sbert", "--resamples", "100", "--details", "--markdown", page)
    done = command("agree", file, *options, "--json", tmp_path / "figures.json", "--html", tmp_path / "page.html")
    assert done.exit_code == 0, done.output
    assert "\x1b" not in done.output
    assert "[bold]x[/bold]" in done.stdout
    assert "b" * 500 in done.stdout
    assert "and 74 more flags" in done.stderr
    assert json.loads((tmp_path / "figures.json").read_text())
