"""VisIT-Bench's public files by command against a real server: predictions, pairs, votes, and answers by model."""

import csv
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.cli.test_runs import command, environment, finish
from tests.support.servers.server_process import ServerProcess

__all__ = ["environment"]

# By model: what it says of the number.
SAID = {
    "llava13b_output": "There are {number} apples in the green basket.",
    "otter": "I see {number} apples.",
    "panda_gpt_13b_output": "The picture shows a red car on a street.",
}
QUESTIONS = 36


def instruction(number: int) -> dict[str, Any]:
    return {
        "instruction_category": ("Counting", "Recognition")[number % 2],
        "image": f"https://images.example/visit_images/{number}_basket.png",
        "instruction": f"How many apples are in basket {number // 2}?",
        "gpt4_prediction": f"There are {number + 20} apples in the green basket.",
        "image_dense_captions": f"A green basket with {number + 20} apples.",
        "human_ratings_gpt4_correct": "FALSE" if number == 3 else "TRUE",
        "human_ratings_problem_in_caption": "FALSE",
    }


@pytest.fixture
def tables(tmp_path: Path) -> list[Path]:
    """A table with the predictions of each model."""
    paths = []
    for model, said in SAID.items():
        rows = [{**instruction(each), model: said.format(number=each + 20)} for each in range(QUESTIONS)]
        paths.append(tmp_path / f"{model}.csv")
        with paths[-1].open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    return paths


@pytest.fixture
def server(minilm: Path, tmp_path: Path) -> Iterator[ServerProcess]:
    directory = tmp_path / "server"
    directory.mkdir()
    with ServerProcess(directory, model_repository=minilm, judge_backend="none") as running:
        yield running


def test_tables_lines_and_pairs_give_one_leaderboard(
    tables: list[Path], tmp_path: Path, server: ServerProcess, environment: Mapping[str, str]
) -> None:
    asked = [instruction(number) for number in range(QUESTIONS) if number != 3]
    lines = tmp_path / "lines.jsonl"
    lines.write_text(
        "".join(
            json.dumps(
                {
                    "id": f"vb-{each['image']}",
                    "instruction": each["instruction"],
                    "family": each["instruction_category"],
                    "caption": each["image_dense_captions"],
                    "reference": each["gpt4_prediction"],
                    "answers": {model: said.format(number=number_of(each)) for model, said in SAID.items()},
                }
            )
            + "\n"
            for each in asked
        )
    )
    pairs = tmp_path / "pairs.jsonl"
    models = list(SAID)
    pairs.write_text(
        "".join(
            json.dumps(
                {
                    "image_url": each["image"],
                    "instruction": each["instruction"],
                    "instruction_category": each["instruction_category"],
                    "A": SAID[a].format(number=number_of(each)),
                    "B": SAID[b].format(number=number_of(each)),
                    "A_model": a,
                    "B_model": b,
                    "reference": each["gpt4_prediction"],
                }
            )
            + "\n"
            for each in asked
            for a, b in ((models[0], models[1]), (models[2], models[1]))
        )
    )
    boards = []
    for name, files in (("tables", tables), ("lines", [lines]), ("pairs", [pairs])):
        out = tmp_path / f"{name}.json"
        options = ("--from", "visit-bench", "--by", "rouge_l", "--tie-margin", "0", "--resamples", "200")
        code, printed, said = finish(
            command(
                *("leaderboard", *files, *options, "--published", "visit-bench-gpt4", "--json", out),
                *("--server", server.address),
                environment=environment,
            )
        )
        assert code == 0, said
        assert "3 of 3" in printed
        boards.append(json.loads(out.read_text()))
    first = boards[0]
    assert [line["model"] for line in first["models"]] == models
    assert (first["pairs"], first["instructions"]) == (3 * (QUESTIONS - 1), QUESTIONS // 2)
    assert set(first["groups"]) == {"Counting", "Recognition"}
    assert first["published"]["visit-bench-gpt4"]["spearman"]["value"] == pytest.approx(1.0)
    for board in boards[1:]:
        assert board["models"] == first["models"]
        assert board["published"] == first["published"]


def number_of(asked: Mapping[str, Any]) -> int:
    return int(str(asked["gpt4_prediction"]).split()[2])


def test_cider_takes_its_corpus_from_the_pairs(
    tables: list[Path], tmp_path: Path, server: ServerProcess, environment: Mapping[str, str]
) -> None:
    """CIDEr prefers the first answer, as the votes do; without a corpus of several references it would be 0."""
    votes = tmp_path / "votes.jsonl"
    models = list(SAID)
    votes.write_text(
        "".join(
            json.dumps(
                {
                    "image_url": instruction(number)["image"],
                    "instruction": instruction(number)["instruction"],
                    "A": SAID[models[0]].format(number=number + 20),
                    "B": SAID[models[2]].format(number=number + 20),
                    "A_model": models[0],
                    "B_model": models[2],
                    "model_selection.A": vote != number % 5,
                    "model_selection.B": vote == number % 5,
                }
            )
            + "\n"
            for number in range(QUESTIONS)
            for vote in range(5)
        )
    )
    out = tmp_path / "found.json"
    code, _, said = finish(
        command(
            *("bench", "pairs", votes, "--from", "visit-bench", "--questions", tables[0], "--metrics", "cider,rouge_l"),
            *("--json", out, "--server", server.address),
            environment=environment,
        )
    )
    assert code == 0, said
    assert f"counted {QUESTIONS} reference lists" in said
    found = {each["evaluator"]: each["strata"] for each in json.loads(out.read_text())["report"]["evaluators"]}
    assert [stratum["stratum"] for stratum in found["cider"]] == ["4/5", "all"]
    assert found["cider"][0]["reproduced"]["value"] == 1.0
    assert found["cider"][0]["ties"] == 0
