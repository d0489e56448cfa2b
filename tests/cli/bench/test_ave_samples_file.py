"""What `gradewire bench ave` reads from its file: columns, formats, which samples are judged and which are left out."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from tests.cli.bench.samples import benched, check, said, samples, stub
from tests.cli.conftest import Command, write_rows

from gradewire_stats.calibration.labelled_rows import half_of


def test_columns_of_other_names_and_several_for_one_field(command: Command, tmp_path: Path) -> None:
    rows = samples()
    renamed = [
        {
            "q": row["question"],
            "gold": row["references"][0],
            "said": row["prediction"],
            **{f"desc{place}": text for place, text in enumerate(row["descriptions"])},
            "syn": row["shifted_references"][0],
            "first": row["grade"] - 1,
            "second": row["grade"] + 1,
            "from": row["dataset"],
        }
        for row in rows
    ]
    maps = ("question=q", "references=gold", "prediction=said", "descriptions=desc0,desc1,desc2")
    maps += ("shifted_references=syn", "labels=first,second", "dataset=from")
    document = benched(command, tmp_path, renamed, *(part for pair in maps for part in ("--map", pair)))
    check(document["evaluators"]["sbert"], rows)


@pytest.mark.parametrize("suffix", ["json", "csv"])
def test_json_and_csv_are_read(command: Command, tmp_path: Path, suffix: str) -> None:
    rows = samples(20)
    file = tmp_path / f"ave.{suffix}"
    if suffix == "json":
        file.write_text(json.dumps(rows))
    else:
        lines = [",".join(rows[0])]
        for row in rows:
            cells = (json.dumps(value) if isinstance(value, list) else str(value) for value in row.values())
            lines.append(",".join('"' + cell.replace('"', '""') + '"' for cell in cells))
        file.write_text("\n".join(lines))
    figures = tmp_path / "figures.json"
    done = command(*("bench", "ave", file, "--metrics", "sbert", "--resamples", "100", "--json", figures), stub=stub())
    assert done.exit_code == 0, done.output
    check(json.loads(figures.read_text())["evaluators"]["sbert"], rows)


def test_texts_may_have_names(command: Command, tmp_path: Path) -> None:
    rows = samples()
    named = [
        {**row, "descriptions": dict(zip("abc", row["descriptions"], strict=True)), "references": {"gold": "a"}}
        for row in rows
    ]
    check(benched(command, tmp_path, named)["evaluators"]["sbert"], rows)


def test_a_half_and_where_choose_samples(command: Command, tmp_path: Path) -> None:
    rows = samples(80)
    wanted = [row for row in rows if half_of(row["question"]) == "b" and row["dataset"] == "gqa"]
    assert 10 < len(wanted) < 40
    document = benched(command, tmp_path, rows, "--half", "b", "--where", "dataset=gqa")
    assert document["samples"] == len(wanted)
    check(document["evaluators"]["sbert"], wanted)


def test_samples_that_cannot_be_judged_are_left_out_and_counted(command: Command, tmp_path: Path) -> None:
    rows = samples()
    good = rows[6:]
    rows[0]["grade"] = math.nan
    rows[1]["grade"] = "much"
    rows[2]["prediction"] = " "
    rows[3]["references"] = [None, ""]
    rows[4]["descriptions"] = ["x"] * 101
    rows[5]["grade"] = math.inf
    text = said(command, tmp_path, rows)
    for reason in (
        "left out 1 row: the row has no label (first at line 1)",
        "left out 2 rows: the label cannot be read as a number (first at line 2)",
        "left out 1 row: the row has no prediction",
        "left out 1 row: the row has no reference",
        "left out 1 row: the row has more than 100 descriptions",
    ):
        assert reason in text
    document = benched(command, tmp_path, rows)
    assert document["samples"] == 54
    check(document["evaluators"]["sbert"], good)


def test_ids_may_repeat_and_texts_may_be_long(command: Command, tmp_path: Path) -> None:
    rows = [{**row, "id": "same"} for row in samples()]
    rows[0]["descriptions"] = ["x" * 10**6, "\u0000\ud800", "x " * 500_000]
    found = benched(command, tmp_path, rows)["evaluators"]["sbert"]
    assert (found["samples"], found["failed"]) == (60, [0, 0, 0])


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ([], (), "rows.jsonl has no rows"),
        ([{"a": 1}], (), "left out 1 row: the row has no reference (first at line 1) (columns: a"),
        (samples(5), ("--half", "a", "--where", "dataset=none"), "no sample can be scored"),
        (samples(5), ("--map", "descriptions=desc1"), "no column 'desc1'. Its columns: id, question"),
        (samples(5), ("--where", "split=test"), "no column 'split'"),
        (samples(5), ("--map", "fame=x"), "write FIELD=COLUMN, where FIELD is one of id, question"),
        (samples(5), ("--baseline", "smile"), "--baseline smile: no such metric. Choose one of sbert"),
    ],
)
def test_wrong_input_says_the_way_out(
    command: Command, tmp_path: Path, rows: list[dict[str, Any]], options: tuple[str, ...], message: str
) -> None:
    file = write_rows(tmp_path / "rows.jsonl", rows)
    done = command("bench", "ave", file, "--metrics", "sbert", "--quiet", *options, stub=stub())
    assert done.exit_code == 2
    assert message in " ".join(done.stderr.split())
