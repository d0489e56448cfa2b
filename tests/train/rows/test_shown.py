"""``gradewire models train grader-texts --change`` writes the changed answers that a training makes, too."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.support.debian.wordnet import wordnet_files

from gradewire_models.cli.group import models
from gradewire_stats.calibration.labelled_rows import half_of
from gradewire_train.rows.counterfactuals import COUNTERFACTUAL, counterfactuals
from gradewire_train.rows.labelled import read_rows
from gradewire_train.texts.lexicon import Lexicon
from gradewire_train.texts.wordnet import WordNet

CITIES = ["Oslo", "Lima", "Cairo", "Quito", "Hanoi", "Tunis", "Sofia", "Dakar"]


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    path = tmp_path / "own.jsonl"
    rows: list[dict[str, Any]] = [
        {
            "id": f"r{number}",
            "question": f"Which city is number {number}?",
            "references": [city],
            "prediction": f"It is {city}, I think.",
            "label": 1,
        }
        for number, city in enumerate(CITIES)
    ]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def run(*options: object) -> Result:
    texts = ["train", "grader-texts", "--wordnet", wordnet_files(), *options]
    return CliRunner().invoke(models, [str(each) for each in texts])


def test_changed_answers_are_written_as_rows_to_train_on(answers: Path, tmp_path: Path) -> None:
    out = tmp_path / "changed.jsonl"
    found = run("--change", answers, "--count", 12, "--seed", 3, "--out", out)
    assert found.exit_code == 0, found.output
    made = counterfactuals(read_rows(answers), 12, Lexicon(WordNet(wordnet_files())), seed=3)
    written = read_rows(out)
    assert [(row.id, row.prediction, row.label, row.source) for row in written] == [
        (row.id, row.prediction, row.label, COUNTERFACTUAL) for row in made
    ]
    assert "12 rows, SHA-256 " in found.output
    assert " of them right, answers of " in found.output


def test_they_are_shown_with_their_label_and_only_of_the_half(answers: Path) -> None:
    found = run("--change", answers, "--half", "a", "--count", 40)
    assert found.exit_code == 0, found.output
    for number in range(len(CITIES)):
        question = f"Which city is number {number}?"
        assert (question in found.output) == (half_of(question) == "a")
    assert "\n  + " in found.output
    assert "\n  - " in found.output


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--half", "a"), "--half needs --change"),
        (("--kind", "unit", "--change", __file__), "--change draws none"),
        (("--part", "eval", "--change", __file__), "--change draws none"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options: tuple[str, ...], says: str) -> None:
    found = run(*options)
    assert found.exit_code == 2
    assert says in found.output
