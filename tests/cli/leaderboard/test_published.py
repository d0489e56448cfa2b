"""Ratings against published ones: the printed tables, and files in their forms."""

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Command, write_rows
from tests.cli.leaderboard.test_reading_recorded import board, pairs

from gradewire_cli.leaderboard.published import PRINTED_TABLES, published_ratings
from gradewire_cli.problems import InputError

RATINGS = {"alpha": 1100.0, "gamma": 980.5, "beta": 900.0}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("r.json", json.dumps(RATINGS)),
        ("r.json", json.dumps([{"name": model, "rating": rating} for model, rating in RATINGS.items()])),
        ("r.jsonl", "".join(json.dumps({"model": m, "elo": r}) + "\n" for m, r in RATINGS.items())),
        ("r.csv", "Model,Elo\n" + "".join(f"{m},{r}\n" for m, r in RATINGS.items())),
        ("r.tsv", "Category\tModel\tElo\n" + "".join(f"Single Image\t{m}\t{r}\n" for m, r in RATINGS.items())),
    ],
)
def test_files_of_ratings(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    assert published_ratings(str(tmp_path / name)) == RATINGS


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("r.json", "[", "is not JSON"),
        ("r.json", '{"alpha": "high"}', "alpha has no rating"),
        ("r.json", '{"alpha": true}', "alpha has no rating"),
        ("r.json", '{"alpha": NaN}', "alpha has no rating"),
        ("r.csv", "model,rating\nalpha,\n", "line 2 has no rating"),
        ("r.csv", "system,rating\nalpha,3\n", "line 2 has no model"),
        ("r.csv", "model,rating\nalpha,3\nalpha,4\n", "alpha has two different ratings"),
        ("r.jsonl", "x\n", "line 1 is not JSON"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, name: str, content: str, reason: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=reason):
        published_ratings(str(tmp_path / name))


def test_printed_tables_have_every_name_of_a_model() -> None:
    gpt4, people = (published_ratings(name) for name in PRINTED_TABLES)
    assert gpt4["LLaVA (13B)"] == gpt4["llava-13b"] == gpt4["llava13b_output"] == 1106
    assert people["llava-13b"] == 1085
    assert (len(set(gpt4.values())), len(set(people.values()))) == (11, 7)
    assert set(people) < set(gpt4)


def test_the_command_prints_correlations_and_the_pairs_in_the_other_order(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "printed.json"
    file.write_text(json.dumps(RATINGS))
    output, found = board(command, tmp_path, pairs(), "--published", file, "--all-tables", "--published-gap", "80.4")
    assert [line["model"] for line in found["models"]] == ["alpha", "beta", "gamma"]
    (ranks,) = found["published"].values()
    assert ranks["spearman"]["value"] == pytest.approx(0.5)
    assert ranks["models"] == ["alpha", "gamma", "beta"]
    assert [(pair["higher"], pair["lower"], pair["is_right"]) for pair in ranks["distant"]] == [
        ("alpha", "gamma", True),
        ("alpha", "beta", True),
        ("gamma", "beta", False),
    ]
    assert "2 of 3" in output
    assert "has the other order for gamma and beta (80.5 apart)" in output
    assert "Published ratings of printed.json" in output
    _, without = board(command, tmp_path, pairs(), "--published", file, "--published-gap", "100")
    (ranks,) = without["published"].values()
    assert [pair["apart"] for pair in ranks["distant"]] == [119.5, 200.0]


def test_what_cannot_be_compared_is_refused_before_a_pair_is_judged(command: Command, tmp_path: Path) -> None:
    file = write_rows(tmp_path / "pairs.jsonl", pairs())
    done = command("leaderboard", file, "--published", tmp_path / "none.json")
    assert done.exit_code == 2
    assert "none.json" in done.stderr
    done = command("leaderboard", file, "--published", "visit-bench-gpt4")
    assert done.exit_code == 2
    assert "no model has a published rating. Rated are alpha, beta, gamma" in done.stderr
