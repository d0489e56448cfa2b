"""`gradewire bench flips` over the real engine: a few pairs whose verdicts are known, edits, and a bad row."""

import json
from pathlib import Path

from click.testing import CliRunner
from tests.cli.conftest import write_rows

from gradewire.api import embedded_transport
from gradewire_cli.group import gradewire

RIVER = {"question": "Which river flows through Vienna?", "references": ["the Danube", "Danube"], "kind": "name"}
PAIRS = [
    {**RIVER, "id": "caught", "answer": "The Danube.", "changed": "The Rhine.", "label": 0},
    {**RIVER, "id": "missed", "answer": "The Danube.", "changed": "The Danube. No wait, the Rhine.", "label": 0},
    {**RIVER, "id": "torn", "answer": "The Danube."},
    {**RIVER, "id": "harmless", "answer": "The Danube.", "changed": "The Danube, of course.", "label": 1},
]


def test_pairs_and_edits_over_the_real_engine(tmp_path: Path, minilm: Path) -> None:
    file, figures = write_rows(tmp_path / "pairs.jsonl", PAIRS), tmp_path / "figures.json"
    transport = embedded_transport(model_repository=minilm, disk_directory=tmp_path / "store", judge_backend="none")
    arguments = ["bench", "flips", file, "--metrics", "lexical_match,value_match,correctness,sbert", "--edits"]
    arguments += ["--group-by", "kind", "--resamples", "100", "--json", figures]
    done = CliRunner().invoke(gradewire, list(map(str, arguments)), obj=transport)
    assert done.exit_code == 0, done.output
    assert f"left out 1 row: no changed in column changed (first at {file} line 3)" in done.stderr
    document = json.loads(figures.read_text())
    found = document["flips"]["lexical_match"]
    assert (found["pairs"], found["right"], found["wrong"]) == (3, 4, 2)
    assert found["wrong_called_right"]["value"] == 0.5, "the reference is still among the words"
    assert (found["right_called_wrong"]["value"], found["kept"]["value"]) == (0.0, 1.0)
    # Values are in no reference here.
    assert document["flips"]["value_match"]["without_verdict"] == 6
    assert document["metrics"]["value_match"]["statuses"].keys() == {"INVALID_INPUT"}
    assert document["flips"]["sbert"]["decided_right"]["value"] is None
    assert document["flips"]["sbert"]["noticed"]["value"] == 1.0
    assert document["flips"]["correctness"]["decided_right"]["value"] is not None
    # The server reads NFC and NFD alike, and other blanks as blanks.
    for metric in ("lexical_match", "correctness", "sbert"):
        assert document["edits"]["non-breaking blanks"][metric]["score_change"]["value"] < 2e-4
