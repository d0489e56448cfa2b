"""Figures and tables of `gradewire bench ave`."""

import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from tests.cli.bench.samples import NAMES, benched, check, expected, said, samples, stub
from tests.cli.conftest import Command, write_rows

from gradewire_cli.results.manifest import read_manifest


def test_the_figures_are_those_of_the_paper(command: Command, tmp_path: Path) -> None:
    rows = samples()
    document = benched(command, tmp_path, rows)
    found = document["evaluators"]["sbert"]
    check(found, rows)
    by_dataset = {}
    for name in NAMES:
        own = [row for row in rows if row["dataset"] == name]
        grades = [row["grade"] for row in own]
        by_dataset[name] = np.mean([stats.spearmanr(column, grades).statistic for column in expected(own).T])
    assert found["datasets"] == pytest.approx(by_dataset)
    assert found["generalization"]["value"] == pytest.approx(math.log2(1 / np.var(list(by_dataset.values()))))
    assert (document["samples"], found["samples"], found["failed"]) == (60, 60, [0, 0, 0])
    assert found["alignment"]["low"] < found["alignment"]["value"] < found["alignment"]["high"]


def test_metrics_of_one_name_are_told_apart_and_compared(command: Command, tmp_path: Path) -> None:
    rows = samples()
    metrics = "sfve?model=base,sfve?model=mini,rouge_l"
    document = benched(command, tmp_path, rows, "--metrics", metrics, "--baseline", "sfve?model=base")
    assert list(document["evaluators"]) == ["sfve?model=base", "sfve?model=mini", "rouge_l"]
    gain = document["differences"]["sfve?model=mini"]
    # The stub scores both alike.
    assert (gain["alignment"]["value"], gain["consistency"]["value"]) == (0, 0)
    assert list(document["differences"]) == ["sfve?model=mini", "rouge_l"]


def test_what_is_not_defined_is_a_dash_with_its_reason(command: Command, tmp_path: Path) -> None:
    assert "no alignment, because all 60 samples have the grade 7" in said(command, tmp_path, samples(grade=7))
    one = said(command, tmp_path, samples(dataset="vqa"))
    assert "no generalization, because it needs at least two data sets" in one
    equal = said(command, tmp_path, samples(prediction="xx"))
    assert "sbert has no value for part 1: all scores are 0.02344" in equal
    rows = [{**row, **({"dataset": "d" * 50} if number < 2 else {})} for number, row in enumerate(samples())]
    rows[0]["grade"] = rows[1]["grade"]
    assert f"sbert has no generalization: all scores or grades of a part are equal in {'d' * 40}…" in said(
        command, tmp_path, rows
    )
    many = [{**row, "dataset": f"set {number // 2}"} for number, row in enumerate(samples())]
    assert "10 more data sets are only in the --json file" in said(command, tmp_path, many)
    rows = [{**row, "descriptions": []} for row in samples()]
    absent = said(command, tmp_path, rows)
    assert "60 of 60 samples have no part 2 (columns descriptions, description)" in absent
    assert "sbert has no value for part 2: no sample has a score" in absent
    document = benched(command, tmp_path, rows)["evaluators"]["sbert"]
    assert document["alignment"]["value"] is document["consistency"]["value"] is None
    assert document["parts"][0]["value"] is not None


def test_the_table_is_like_the_papers(command: Command, tmp_path: Path) -> None:
    page = tmp_path / "table.md"
    file = write_rows(tmp_path / "rows.jsonl", samples())
    options = ("--resamples", "100", "--markdown", page, "--quiet")
    done = command("bench", "ave", file, *options, stub=stub())
    assert done.exit_code == 0, done.output
    text = page.read_text()
    assert "| evaluator | part 1 | part 2 | part 3 | alignment | consistency | generalization |" in text
    assert "| evaluator | gqa | okvqa | consistency / spread | samples | failed by part |" in text
    named = [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("| ")][1:9]
    assert named == ["sbert", "sfve", "bertscore", "smile", "rouge_l", "bleu", "meteor", "exact_match"]
    assert "intervals: draws of whole questions, 100 for Spearman, alignment" in text
    manifest = read_manifest(tmp_path / "table.md.manifest.json")
    assert (manifest.command, list(manifest.metrics)) == ("bench ave", named)
    assert manifest.counts.rows == len(samples())
    assert manifest.parameters["variance"] == "population"


def test_data_sets_are_printed_where_all_tables_are_asked_for(command: Command, tmp_path: Path) -> None:
    file = write_rows(tmp_path / "rows.jsonl", samples())
    options = ("--metrics", "sbert,rouge_l", "--baseline", "sbert", "--resamples", "100")
    short = command("bench", "ave", file, *options, stub=stub())
    long = command("bench", "ave", file, *options, "--all-tables", stub=stub())
    assert (short.exit_code, long.exit_code) == (0, 0), short.output
    shown = {
        "Alignment with annotators": (True, True),
        "Difference from sbert": (True, True),
        "by data set": (False, True),
    }
    for title, where in shown.items():
        assert (title in short.stdout, title in long.stdout) == where
    assert "use --all-tables to print more tables" in short.stderr
