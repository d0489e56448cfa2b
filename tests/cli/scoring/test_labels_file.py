"""Labels in a file of their own: joined by id for agreement and calibration, counted, and refused if unclear."""

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import Result
from pyarrow import parquet
from tests.cli.conftest import Command, write_rows

from gradewire._columns import ALIASES
from gradewire_cli.rows.columns import RowOptions
from gradewire_cli.scoring.labels_file import LABEL_NAMES, LabelsFile, Marks

ROWS = [{"id": f"r{place}", "ground_truth": "x", "answer": "x" * (1 + place % 7)} for place in range(12)]
LABELS = [{"id": row["id"], "correct": int(len(str(row["answer"])) > 3)} for row in ROWS]


def labels_in(path: Path, table: list[dict[str, Any]]) -> Path:
    if path.suffix == ".jsonl":
        return write_rows(path, table)
    if path.suffix == ".parquet":
        parquet.write_table(pa.Table.from_pylist(table), path)
        return path
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(table[0]))
        writer.writeheader()
        writer.writerows(table)
    return path


def agree(
    command: Command, folder: Path, labels: Path, *options: str, rows: list[dict[str, Any]] | None = None
) -> Result:
    path = write_rows(folder / "answers.jsonl", ROWS if rows is None else rows)
    out = folder / "figures.json"
    arguments = ["agree", path, "--labels-file", labels, "--metrics", "rouge_l", "--resamples", "100", "--json", out]
    return command(*arguments, *options)


def figures(folder: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((folder / "figures.json").read_text())
    return document


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_labels_of_a_file_are_those_of_its_rows(command: Command, tmp_path: Path, suffix: str) -> None:
    done = agree(command, tmp_path, labels_in(tmp_path / f"labels{suffix}", LABELS[::-1]))
    assert done.exit_code == 0, done.output
    joined = figures(tmp_path)
    inline = [{**row, "label": each["correct"]} for row, each in zip(ROWS, LABELS, strict=True)]
    path = write_rows(tmp_path / "inline.jsonl", inline)
    out = tmp_path / "inline.json"
    assert command("agree", path, "--metrics", "rouge_l", "--resamples", "100", "--json", out).exit_code == 0
    assert joined["metrics"] == json.loads(out.read_text())["metrics"]
    assert joined["labels"]["file"].endswith(f"labels{suffix}")
    assert joined["labels"]["labels_without_a_row"] == 0


def test_rows_and_labels_without_a_partner_are_counted(command: Command, tmp_path: Path) -> None:
    others = [{"id": "elsewhere", "correct": 1}, {"id": "r0", "correct": None}, {"id": None, "correct": None}]
    done = agree(command, tmp_path, labels_in(tmp_path / "labels.csv", [*LABELS[2:], *others]))
    assert done.exit_code == 0, done.output
    assert "left out 2 rows without a label" in done.stdout + done.stderr
    assert f"left out 1 labels in {tmp_path / 'labels.csv'} without a row" in done.stdout + done.stderr
    assert figures(tmp_path)["labels"]["unlabelled_rows"] == 2
    assert figures(tmp_path)["labels"]["labels_without_a_row"] == 1


def test_labels_in_the_rows_do_not_count(command: Command, tmp_path: Path) -> None:
    rows = [{**row, "label": 1 - each["correct"]} for row, each in zip(ROWS, LABELS, strict=True)]
    assert agree(command, tmp_path, labels_in(tmp_path / "labels.csv", LABELS), rows=rows).exit_code == 0
    replaced = figures(tmp_path)["metrics"]
    assert agree(command, tmp_path, tmp_path / "labels.csv").exit_code == 0
    assert figures(tmp_path)["metrics"] == replaced


def test_several_annotators_have_a_column_each(command: Command, tmp_path: Path) -> None:
    table = [{**each, "ann": place % 2, "bo": place % 3 % 2} for place, each in enumerate(LABELS)]
    labels = labels_in(tmp_path / "labels.csv", table)
    done = agree(command, tmp_path, labels, "--labels-map", "labels=ann,bo", "--labels", "majority")
    assert done.exit_code == 0, done.output
    assert "from up to 2 annotators" in done.stdout + done.stderr


def test_ids_are_compared_as_texts(command: Command, tmp_path: Path) -> None:
    rows = [{**row, "id": place} for place, row in enumerate(ROWS)]
    labels = [{"id": float(place), "correct": each["correct"]} for place, each in enumerate(LABELS)]
    done = agree(command, tmp_path, labels_in(tmp_path / "labels.parquet", labels), rows=rows)
    assert done.exit_code == 0, done.output
    assert "without a" not in done.stdout + done.stderr
    mapped = [{"key": f" {each['id']} ", "said": "right" if each["correct"] else "wrong"} for each in LABELS]
    maps = ("--labels-map", "id=key", "--labels-map", "label=said")
    done = agree(command, tmp_path, labels_in(tmp_path / "labels.csv", mapped), *maps)
    assert done.exit_code == 0, done.output


def test_the_id_of_both_files_may_be_mapped_once(command: Command, tmp_path: Path) -> None:
    rows = [{**row, "id": None, "case": row["id"]} for row in ROWS]
    labels = [{"case": each["id"], "correct": each["correct"]} for each in LABELS]
    done = agree(command, tmp_path, labels_in(tmp_path / "labels.csv", labels), "--map", "id=case", rows=rows)
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    ("table", "options", "said"),
    [
        ([*LABELS, {"id": "r1", "correct": 1}], (), "line 14 has another label for the id r1 than line 3"),
        (
            [{"name": "r1", "correct": 1}],
            (),
            "no column for id (looked for id). Columns: name, correct. Use --labels-map",
        ),
        ([{"id": "r1", "said": 1}], (), "Columns: id, said. Use --labels-map label=COLUMN"),
        ([{"id": "r1", "correct": 1, "human": 0}], (), "Use --labels-map label=human, or --labels-map label=correct"),
        ([{"id": "", "correct": 1}], (), "line 2 has a label, but no id"),
        ([{"id": "r99", "correct": 1}], (), "no id of"),
        ([{"id": "r1", "correct": "perhaps"}], (), "the first labels are all unreadable"),
        (LABELS, ("--map", "label=correct"), "--map label does not work with --labels-file"),
        (LABELS, ("--against", "rouge_l"), "--against replaces the labels"),
        (LABELS, ("--labels-map", "prediction=x"), "FIELD is one of id, label, labels"),
    ],
)
def test_unclear_labels_are_refused_before_scoring(
    table: list[dict[str, Any]], options: tuple[str, ...], said: str, command: Command, tmp_path: Path
) -> None:
    done = agree(command, tmp_path, labels_in(tmp_path / "labels.csv", table), *options)
    assert done.exit_code == 2, done.output
    assert said in " ".join(done.stderr.split())
    assert not done.stdout


def test_the_same_label_twice_is_one_label(command: Command, tmp_path: Path) -> None:
    done = agree(command, tmp_path, labels_in(tmp_path / "labels.csv", [*LABELS, LABELS[0]]))
    assert done.exit_code == 0, done.output
    assert "without a" not in done.stdout + done.stderr


def test_an_id_of_two_rows_has_no_label_of_its_own(command: Command, tmp_path: Path) -> None:
    labels = labels_in(tmp_path / "labels.csv", LABELS)
    rows = [{**row, "model": model} for model in ("a", "b") for row in ROWS]
    done = agree(command, tmp_path, labels, rows=rows)
    assert done.exit_code == 2
    assert "line 13 has the same id as an earlier row, r0" in done.stderr
    assert agree(command, tmp_path, labels, "--where", "model=b", rows=rows).exit_code == 0


def test_rows_need_an_id(command: Command, tmp_path: Path) -> None:
    rows = [{name: value for name, value in row.items() if name != "id"} for row in ROWS]
    done = agree(command, tmp_path, labels_in(tmp_path / "labels.csv", LABELS), rows=rows)
    assert done.exit_code == 2
    assert "no column for id (looked for id). Columns: ground_truth, answer. Use --map id=COLUMN" in done.stderr


def test_a_row_that_cannot_be_read_ends_the_run(command: Command, tmp_path: Path) -> None:
    labels = tmp_path / "labels.csv"
    labels.write_text("id,correct\nr1,1\nr2,1,0\n")
    done = agree(command, tmp_path, labels)
    assert done.exit_code == 2
    assert "line 3 has 3 cells, but the header has 2" in done.stderr


def test_labels_are_no_output(command: Command, tmp_path: Path) -> None:
    labels = labels_in(tmp_path / "labels.jsonl", LABELS)
    done = agree(command, tmp_path, labels, "--csv", str(labels))
    assert done.exit_code == 2
    assert len(labels.read_text().splitlines()) == len(LABELS)


def test_thresholds_are_fitted_to_the_labels_of_a_file(command: Command, tmp_path: Path) -> None:
    labels = labels_in(tmp_path / "labels.csv", LABELS)
    path = write_rows(tmp_path / "answers.jsonl", ROWS)
    done = command("calibrate", path, "--labels-file", labels, "--dry-run", "--metric", "smile", "--resamples", "100")
    assert done.exit_code == 0, done.output
    assert "fitted on 12 rows, 6 of them right" in " ".join(done.output.split()), done.output


def test_tables_of_papers_name_the_labels_in_their_manifest(command: Command, tmp_path: Path) -> None:
    labels = labels_in(tmp_path / "labels.csv", LABELS)
    path = write_rows(tmp_path / "answers.jsonl", ROWS)
    out = tmp_path / "table.json"
    done = command(
        "bench", "accuracy", path, "--labels-file", labels, "--metrics", "rouge_l", "--cut", "0.04", "--json", out
    )
    assert done.exit_code == 0, done.output
    assert json.loads(out.read_text())["labels"]["file"] == str(labels)
    manifest = json.loads((tmp_path / "table.json.manifest.json").read_text())
    assert [Path(each["path"]).name for each in manifest["inputs"]] == ["answers.jsonl", "labels.csv"]


def added(command: Command, folder: Path, labels: Path, rows: list[dict[str, Any]], *options: str) -> Result:
    path = write_rows(folder / "answers.jsonl", rows)
    fitting = ("--dry-run", "--metric", "smile", "--resamples", "100", "--quiet")
    return command("calibrate", path, "--add", labels, *fitting, *options)


def test_added_labels_replace_and_complete_those_of_the_rows(command: Command, tmp_path: Path) -> None:
    truth = {str(each["id"]): each["correct"] for each in LABELS}
    own = [{**row, "label": truth[str(row["id"])]} if place < 6 else row for place, row in enumerate(ROWS)]
    own[0] = {**own[0], "label": 1 - truth["r0"]}
    file = labels_in(
        tmp_path / "labels.csv",
        [{"id": "r0", "ann": truth["r0"]}, *({"id": f"r{place}", "ann": truth[f"r{place}"]} for place in range(6, 12))],
    )
    done = added(command, tmp_path, file, own)
    assert done.exit_code == 0, done.output
    said = " ".join(done.output.split())
    assert "fitted on 12 rows, 6 of them right" in said
    assert "Gain from 7 added labels" in said
    inline = write_rows(tmp_path / "inline.jsonl", [{**row, "label": truth[str(row["id"])]} for row in ROWS])
    plain = command("calibrate", inline, "--dry-run", "--metric", "smile", "--resamples", "100", "--quiet")
    digest = next(word for word in said.split("SHA-256 ")[1].split())
    assert f"SHA-256 {digest}" in plain.output
    assert "added labels" not in plain.output


def test_an_added_file_without_labels_is_reported(command: Command, tmp_path: Path) -> None:
    labels = tmp_path / "labels.csv"
    labels.write_text("id,ann\nr1,\n")
    truth = {str(each["id"]): each["correct"] for each in LABELS}
    done = added(command, tmp_path, labels, [{**row, "label": truth[str(row["id"])]} for row in ROWS])
    assert done.exit_code == 0, done.output
    said = " ".join(done.output.split())
    assert f"no row has a label in {labels}, so it changes nothing" in said
    assert "added labels" not in said


def test_every_column_of_an_added_file_is_an_annotators(command: Command, tmp_path: Path) -> None:
    labels = [{"id": each["id"], "ann": each["correct"], "ben": place % 2} for place, each in enumerate(LABELS)]
    done = added(command, tmp_path, labels_in(tmp_path / "labels.csv", labels), ROWS, "--labels", "majority")
    assert done.exit_code == 0, done.output
    right = sum((each["ann"] + each["ben"]) / 2 >= 0.5 for each in labels)
    assert f"fitted on 12 rows, {right} of them right" in " ".join(done.output.split())
    one = added(command, tmp_path, labels_in(tmp_path / "labels.csv", labels), ROWS, "--labels-map", "label=ann")
    assert "fitted on 12 rows, 6 of them right" in " ".join(one.output.split())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--labels-file", "labels.csv"), "--labels-file replaces all labels and --add only some"),
        (("--add", "-"), "--add cannot be standard input"),
    ],
)
def test_added_labels_have_one_file(command: Command, tmp_path: Path, options: tuple[str, ...], said: str) -> None:
    done = added(command, tmp_path, labels_in(tmp_path / "labels.csv", LABELS), ROWS, *options)
    assert done.exit_code == 2
    assert said in " ".join(done.stderr.split())


def test_flags_and_classes_of_annotators_join_their_rows(command: Command, tmp_path: Path) -> None:
    """Flags of any annotator count, and the class that most annotators gave."""
    marked = {
        "r0": {"flags:ann": "time-dependent", "flags:ben": "none", "error_class:ann": "synonym"},
        "r1": {"flags:ann": "none", "flags:ben": "bad-gold,time-dependent", "error_class:ben": "own"},
        "r2": {"error_class:ann": "synonym", "error_class:ben": "own"},
    }
    columns = ("flags:ann", "flags:ben", "error_class:ann", "error_class:ben")
    labels = [
        {"id": each["id"], "ann": each["correct"], "ben": each["correct"]}
        | {column: marked.get(str(each["id"]), {}).get(column, "") for column in columns}
        for each in LABELS
    ]
    path = labels_in(tmp_path / "labels.csv", [*labels, {**labels[0], "id": "r99", "ann": "", "ben": ""}])
    read = LabelsFile(
        str(path), RowOptions(needed=("id", "label"), usual={**ALIASES, "label": LABEL_NAMES}), adds=True
    ).read()
    assert read.marks == {
        "r0": Marks(("time-dependent",), "synonym"),
        "r1": Marks(("bad-gold", "time-dependent"), "own"),
        "r99": Marks(("time-dependent",), "synonym"),
    }
    rows = [{**row, "flags": "mine"} for row in ROWS]
    options = ("--labels-map", "labels=ann,ben", "--without-flag", "time-dependent")
    done = agree(command, tmp_path, path, *options, rows=rows)
    assert done.exit_code == 0, done.output
    flags = figures(tmp_path)["flags"]
    assert (flags["rows"], flags["left_out"]) == ({"bad-gold": 1, "mine": 12, "time-dependent": 2}, 2)
