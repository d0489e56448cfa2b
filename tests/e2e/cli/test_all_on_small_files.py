"""`--metrics all` over files that lack something, without WordNet: what is left can be had."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.cli.conftest import read_rows, write_rows

from gradewire.api import embedded_transport
from gradewire.metrics import METRIC_TYPES
from gradewire_cli.group import gradewire

CORPUS = [name for name, kind in METRIC_TYPES.items() if kind.needs_corpus]
QUESTION = [name for name, kind in METRIC_TYPES.items() if kind.needs_question and not kind.asks_judge()]
SEVERAL = [", ".join(name for name, kind in METRIC_TYPES.items() if kind.least_references > 1)]
VALUES = [name for name, kind in METRIC_TYPES.items() if kind.needs_values or kind.needs_choices]

ROW = {"question": "which pet", "references": ["cat", "a kitten"], "prediction": "it is a cat"}
OTHER = {"question": "which tool", "references": ["a wok", "a pan"], "prediction": "a pan"}


def score(tmp_path: Path, minilm: Path, rows: list[dict[str, Any]], metrics: str = "all") -> Result:
    file = write_rows(tmp_path / "rows.jsonl", rows)
    transport = embedded_transport(
        model_repository=minilm,
        disk_directory=tmp_path / "store",
        judge_backend="none",
        wordnet_directory=tmp_path / "nowhere",
    )
    return CliRunner().invoke(gradewire, ["score", str(file), "--metrics", metrics], obj=transport)


@pytest.mark.parametrize(
    ("rows", "left_out"),
    [
        ([ROW, OTHER], []),
        ([ROW], CORPUS),
        ([ROW, {**OTHER, "references": ["a wok"]}], SEVERAL),
        ([{**ROW, "references": ["cat"]}], [*CORPUS, *SEVERAL]),
        ([ROW, {**ROW, "prediction": "a dog"}], CORPUS),
        ([{**each, "question": ""} for each in (ROW, OTHER)], QUESTION),
        ([{"references": "cat", "prediction": "a cat"}], [*CORPUS, *QUESTION, *SEVERAL]),
        ([{**each, "prediction": ""} for each in (ROW, OTHER)], []),
    ],
    ids=["whole", "one row", "mixed", "one reference", "one question", "no question", "only answers", "no predictions"],
)
def test_all_is_what_these_rows_can_have(
    tmp_path: Path, minilm: Path, rows: list[dict[str, Any]], left_out: list[str]
) -> None:
    done = score(tmp_path, minilm, rows)
    assert done.exit_code == 0, done.output
    told = [line for line in done.stderr.splitlines() if line.startswith("left out of all: ")]
    assert sorted(line.removeprefix("left out of all: ").partition(" (")[0] for line in told) == sorted(
        [*left_out, *VALUES, "meteor"]
    )
    assert any("wordnet-base" in line for line in told)
    statuses = {each["status"] for row in read_rows(done.stdout) for each in row["scores"].values()}
    assert statuses == {"OK" if rows[0]["prediction"] else "EMPTY_PREDICTION"}


@pytest.mark.parametrize("metric", ["meteor", "cider", "sfve", "vqa_accuracy"])
def test_a_metric_that_is_named_fails_its_rows(tmp_path: Path, minilm: Path, metric: str) -> None:
    done = score(tmp_path, minilm, [{"references": ["cat"], "prediction": "a cat"}], metric)
    assert done.exit_code == 1, done.output
    assert read_rows(done.stdout)[0]["scores"][metric]["score"] is None
