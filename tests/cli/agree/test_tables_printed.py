"""What `agree` and `bench` print by themselves and with --all-tables, and what their files have in any case."""

import csv
import math
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Command, figures_of, write_rows
from tests.cli.judged import judging_stub, rows_of


@pytest.fixture
def _narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradewire_cli.results.tables.columns_of", lambda _: 80)


def terminal_lines(text: str) -> int:
    """Lines of a terminal of 80 columns that the text fills."""
    return sum(max(1, math.ceil(len(line) / 80)) for line in text.splitlines())


def figures_in(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.mark.usefixtures("_narrow")
@pytest.mark.parametrize("words", [("agree",), ("bench", "accuracy"), ("bench", "knvqa")])
def test_one_metric_and_one_data_set_fit_into_a_terminal(
    command: Command, tmp_path: Path, words: tuple[str, ...]
) -> None:
    rows = rows_of(80, dataset="nq", model="big", labels=[1, 0, 1])
    file = write_rows(tmp_path / "rows.jsonl", rows)
    done = command(*words, file, "--metrics", "rouge_l", "--resamples", "100", stub=judging_stub())
    assert done.exit_code == 0, done.output
    shown = done.stdout + done.stderr
    assert terminal_lines(shown) <= 24
    assert max(len(line.rstrip()) for line in shown.splitlines() if "[." in line and ":" not in line) <= 80
    assert "--all-tables" in done.stderr


def test_the_short_view_has_all_rows_and_says_how_to_see_the_rest(command: Command, tmp_path: Path) -> None:
    file = write_rows(tmp_path / "rows.jsonl", rows_of(80))
    options = ("--metrics", "rouge_l,sbert", "--resamples", "100", "--compare-all")
    short = command("agree", file, *options, stub=judging_stub())
    assert "All rows" in short.stdout
    assert "Mean of 4 cells" in short.stdout
    assert "Paired differences" in short.stdout
    assert " by " not in short.stdout
    said = "more tables with --all-tables: by data set and model, by data set, by model, means by model"
    assert said in short.stderr
    long = command("agree", file, *options, "--all-tables", stub=judging_stub())
    assert "AUC by data set and model" in long.stdout
    assert "--all-tables" not in long.stderr


def test_data_sets_models_and_groups_stand_in_tables_of_their_own(command: Command, tmp_path: Path) -> None:
    rows = [{**row, "kind": "number" if index % 3 else "colour"} for index, row in enumerate(rows_of(80))]
    file, page = write_rows(tmp_path / "rows.jsonl", rows), tmp_path / "figures.csv"
    options = ("--metrics", "rouge_l,sbert", "--resamples", "100", "--map", "group=kind", "--csv", page)
    levels = ("--group-by", "cell", "--group-by", "dataset", "--group-by", "model", "--group-by", "group")
    done = command("agree", file, *options, *levels, "--statistics", "auc", stub=judging_stub())
    assert done.exit_code == 0, done.output
    columns: dict[str, set[str]] = {}
    for line in figures_in(page):
        columns.setdefault(line["table"], set()).add(line["column"])
    assert {name: found for name, found in columns.items() if name.startswith("AUC by ")} == {
        "AUC by data set and model": {"nq big", "nq small", "tq big", "tq small"},
        "AUC by data set": {"nq", "tq"},
        "AUC by model": {"big", "small"},
        "AUC by group": {"number", "colour"},
    }
    assert all(f"AUC by {name}" in done.stdout for name in ("data set and model", "data set", "model", "group"))


def test_groups_of_a_single_data_set_and_model_are_shown(command: Command, tmp_path: Path) -> None:
    rows = [{**row, "kind": "ab"[index % 2]} for index, row in enumerate(rows_of(60, dataset="nq", model="big"))]
    file = write_rows(tmp_path / "rows.jsonl", rows)
    options = ("--metrics", "rouge_l,sbert", "--resamples", "100", "--map", "group=kind", "--group-by", "group")
    assert "AUC by group" in command("agree", file, *options, stub=judging_stub()).stdout


def test_csv_has_the_figures_of_json_unrounded(command: Command, tmp_path: Path) -> None:
    page = tmp_path / "figures.csv"

    def run(*arguments: Any) -> Any:
        return command("agree", *arguments, stub=judging_stub())

    document = figures_of(
        run,
        tmp_path,
        rows_of(80),
        "--metrics",
        "rouge_l,sbert",
        "--compare-all",
        "--csv",
        page,
        "--group-by",
        "dataset",
    )
    found = {(line["table"], line["row"], line["column"]): line for line in figures_in(page)}
    every = document["metrics"]["rouge_l"]["cells"][-1]
    line = found["All rows", "rouge_l", "Pearson"]
    assert [float(line[name]) for name in ("value", "low", "high")] == [
        every["pearson"][name] for name in ("value", "low", "high")
    ]
    assert found["All rows", "rouge_l", "rows"]["value"] == "80"
    cell = next(cell for cell in document["metrics"]["sbert"]["cells"] if cell["level"] == "dataset")
    assert float(found["AUC by data set", "sbert", cell["dataset"]]["high"]) == cell["auc"]["high"]
    difference = next(one for one in document["comparisons"] if one["statistic"] == "auc")["all_rows"]
    written = found["Paired differences, on the rows that both metrics scored", "sbert minus rouge_l, AUC", "all rows"]
    assert float(written["p_value"]) == difference["p_value"]


@pytest.mark.parametrize("name", ["accuracy", "knvqa"])
def test_files_of_a_bench_have_all_tables_whatever_is_printed(command: Command, tmp_path: Path, name: str) -> None:
    file = write_rows(tmp_path / "rows.jsonl", rows_of(80))
    files = ("--csv", tmp_path / "t.csv", "--latex", tmp_path / "t.tex", "--markdown", tmp_path / "t.md")
    options = ("--metrics", "rouge_l,meteor", "--resamples", "100")
    short = command("bench", name, file, *options, *files, stub=judging_stub())
    long = command("bench", name, file, *options, "--all-tables", stub=judging_stub())
    assert (short.exit_code, long.exit_code) == (0, 0), short.output
    titles = list(dict.fromkeys(line["table"] for line in figures_in(tmp_path / "t.csv")))
    assert len(titles) >= 3
    assert (tmp_path / "t.tex").read_text().count(r"\begin{table}") == len(titles)
    for title in titles:
        assert f"**{title}**" in (tmp_path / "t.md").read_text()
        assert title in long.stdout
    assert any(title not in short.stdout for title in titles)
    assert "use --all-tables to print more tables" in short.stderr
    values = [line for line in figures_in(tmp_path / "t.csv") if line["row"] == "rouge_l" and line["low"]]
    assert all(float(line["low"]) <= float(line["value"]) <= float(line["high"]) for line in values)
    assert values
