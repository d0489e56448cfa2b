"""Values inside a row's objects and lists, in every format that can have them."""

import csv
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet
from tests.cli.conftest import Command, read_rows, write_rows

from gradewire_cli.prepare import write_rows as write_prepared
from gradewire_cli.rows.columns import RowOptions
from gradewire_cli.rows.formats import Reading, Record, with_paths
from gradewire_cli.rows.input_file import InputFile
from gradewire_cli.rows.paths import text_paths, value_at

TABLE = [
    {
        "source": "s",
        "prompt": [{"role": "system", "content": "Be short."}, {"role": "user", "content": "Which sea?"}],
        "reward_model": {"style": "rule", "ground_truth": ["the Baltic", "Baltic Sea"]},
        "extra": {"split": split},
        "response": "the Baltic",
    }
    for split in ("test", "train")
]
MAPS = ("--map", "references=reward_model.ground_truth", "--map", "question=prompt.1.content")


def written(path: Path) -> Path:
    match path.suffix:
        case ".jsonl":
            return write_rows(path, TABLE)
        case ".json":
            path.write_text(json.dumps(TABLE))
        case ".parquet":
            parquet.write_table(pa.Table.from_pylist(TABLE), path)
        case ".tsv":
            with path.open("w", newline="") as stream:
                writer = csv.DictWriter(stream, list(TABLE[0]), delimiter="\t")
                writer.writeheader()
                writer.writerows({name: json.dumps(value) for name, value in row.items()} for row in TABLE)
        case ".csv":
            pd.DataFrame(TABLE).to_csv(path, index=False)  # objects as Python prints them
    return path


@pytest.mark.parametrize("suffix", [".jsonl", ".json", ".parquet", ".tsv", ".csv"])
def test_nested_values_are_read_in_every_format(command: Command, tmp_path: Path, suffix: str) -> None:
    path = written(tmp_path / f"rows{suffix}")
    done = command("score", path, *MAPS, "--keep-columns", "extra.split,source")
    assert done.exit_code == 0, done.output
    source = '"s"' if suffix == ".tsv" else "s"
    assert [row["input"] for row in read_rows(done.stdout)] == [
        {"extra.split": split, "source": source} for split in ("test", "train")
    ]
    wrong = command("score", path, "--map", "references=reward_model.truth")
    assert wrong.exit_code == 2
    assert "no column 'reward_model.truth'" in wrong.stderr


def test_a_value_is_a_column_for_groups_too(command: Command, tmp_path: Path) -> None:
    path = written(tmp_path / "rows.parquet")
    done = command("score", path, *MAPS, "--group-by", "extra.split", "--out", tmp_path / "out.jsonl")
    assert done.exit_code == 0, done.output
    assert "extra.split" in done.stderr


def test_all_columns_are_those_of_the_file(command: Command, tmp_path: Path) -> None:
    path = written(tmp_path / "rows.jsonl")
    done = command("score", path, *MAPS, "--keep-columns", "all")
    assert [row["input"] for row in read_rows(done.stdout)] == TABLE
    options = RowOptions({"references": "reward_model.ground_truth"})
    source = InputFile((str(path),), options, Reading(columns=options.named_columns))
    write_prepared(tmp_path / "out.jsonl", source, {0: ("It is the Baltic.",)})
    prepared = read_rows((tmp_path / "out.jsonl").read_text())
    assert prepared == [{**TABLE[0], "synthetic_answers": ["It is the Baltic."]}, TABLE[1]]


def test_rows_are_chosen_by_nested_values(command: Command, tmp_path: Path) -> None:
    path = write_rows(tmp_path / "rows.jsonl", [{**row, "label": 1} for row in TABLE])
    out = tmp_path / "out.json"
    done = command("agree", path, *MAPS, "--metrics", "rouge_l", "--where", "extra.split=test", "--json", out)
    assert done.exit_code == 0, done.output
    assert json.loads(out.read_text())["metrics"]["rouge_l"]["cells"][0]["rows"] == 1


def test_a_missing_object_has_a_missing_value() -> None:
    assert value_at({"a": None}, "a.b.c") is None
    assert value_at({"a": {"b": None}}, "a.b.c") is None
    fields = [{"a": {"b": 1}}, {"a": None}, {"a": {}}, {"a": "text"}, {"a.b": 2, "a": {"b": 1}}]
    records = [Record(index, "row", each) for index, each in enumerate(fields)]
    found = [record.fields.get("a.b", "absent") for record in with_paths(records, ["a.b", "a"]) if record.fields]
    assert found == [1, None, "absent", "absent", 2]


@pytest.mark.parametrize("path", ["a.0", "a.00", "a.-1", "a.3", "a.x", "a.", ".a", "a..0", "a.²", "a." + "9" * 5000])
def test_positions_are_digits_within_the_list(path: str) -> None:
    (record,) = with_paths([Record(0, "row", {"a": ["x"]})], [path])
    assert list(record.nested) == ([path] if path in {"a.0", "a.00"} else [])


KEYS = st.text(st.sampled_from("ab. "), min_size=1, max_size=4)
NESTED = st.recursive(
    st.text(max_size=3) | st.none() | st.integers(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=3).filter(lambda key: "." not in key), NESTED, min_size=1, max_size=3))
def test_every_text_that_is_named_is_found(value: dict[str, Any]) -> None:
    for path in text_paths(value, "column"):
        assert isinstance(value_at({"column": value}, path), str | list)


@given(st.dictionaries(KEYS, NESTED, max_size=3), st.text(max_size=8) | KEYS)
def test_any_path_is_a_value_or_absent(fields: dict[str, Any], path: str) -> None:
    (record,) = with_paths([Record(0, "row", fields)], [path])
    assert record.fields is not None
    assert {name: record.fields[name] for name in fields} == fields
    assert list(record.nested) == [name for name in record.fields if name not in fields]
