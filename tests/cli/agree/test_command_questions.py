"""Which rows answer the same question, and what `agree` says where there are too few questions."""

import itertools
import math
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Command, figures_of
from tests.cli.judged import judging_stub

COLOURS = ("red", "blue", "green")


def over_images(images: int = 30, answers: int = 2) -> list[dict[str, Any]]:
    """The same words over every image, several answers to each; the better ones tend to be longer."""
    return [
        {
            "question": "What colour is the car?",
            "references": [COLOURS[image % 3]],
            "prediction": "x" * (1 + (7 * image + 5 * answer) % 19),
            "label": int((7 * image + 5 * answer) % 19 + 9 * (image % 3) > 16),
            "model": f"model {answer}",
            "picture": f"img{image}",
        }
        for image in range(images)
        for answer in range(answers)
    ]


def agreed(command: Command, tmp_path: Path, rows: list[dict[str, Any]], *options: str) -> dict[str, Any]:
    run = partial(command, "agree", stub=judging_stub())
    document = figures_of(run, tmp_path, rows, "--metrics", "rouge_l", *options)
    return next(cell for cell in document["metrics"]["rouge_l"]["cells"] if cell["level"] == "all")


def pairwise(rows: list[dict[str, Any]], *columns: str) -> float:
    """Ordered pairs of rows that are equal in these columns, counted one by one."""
    counted = [
        0.5
        if len(one["prediction"]) == len(other["prediction"])
        else float((len(one["prediction"]) < len(other["prediction"])) == (one["label"] < other["label"]))
        for one, other in itertools.combinations(rows, 2)
        if one["label"] != other["label"] and all(one[column] == other[column] for column in columns)
    ]
    return sum(counted) / len(counted)


@pytest.mark.parametrize("column", ["question_id", "image_id", "image"])
def test_the_same_words_over_another_image_are_another_question(command: Command, tmp_path: Path, column: str) -> None:
    rows = [{**row, column: row["picture"]} for row in over_images()]
    found = agreed(command, tmp_path, rows)
    assert found["questions"] == 30
    assert found["pairwise"]["value"] == pytest.approx(pairwise(rows, "picture"))
    assert found["pairwise"]["value"] != pytest.approx(pairwise(rows, "question"))
    assert found["pearson"]["low"] < found["pearson"]["value"] < found["pearson"]["high"]
    mapped = agreed(command, tmp_path, over_images(), "--map", "question_id=picture")
    assert mapped == found


def test_without_an_id_questions_of_other_references_are_other_questions(command: Command, tmp_path: Path) -> None:
    found = agreed(command, tmp_path, over_images())
    assert found["questions"] == 3
    assert found["pairwise"]["value"] == pytest.approx(pairwise(over_images(), "references"))
    assert found["pearson"]["value"] is not None
    assert found["pearson"]["low"] is None
    several = [{**row, "references": [row["picture"], "car"]} for row in over_images()]
    shuffled = [{**row, "references": row["references"][::-1]} if row["label"] else row for row in several]
    assert agreed(command, tmp_path, shuffled)["questions"] == 30, "their order says nothing"


def test_two_questions_about_an_image_are_two_questions(command: Command, tmp_path: Path) -> None:
    rows = [
        {**row, "image": row["picture"], "question": f"question {index % 2}"} for index, row in enumerate(over_images())
    ]
    assert agreed(command, tmp_path, rows)["questions"] == 60


def test_rows_with_neither_question_nor_id_stand_alone(command: Command, tmp_path: Path) -> None:
    rows = [{key: value for key, value in row.items() if key != "question"} for row in over_images()]
    assert agreed(command, tmp_path, rows)["questions"] == 60
    assert agreed(command, tmp_path, [{**row, "image": row["picture"]} for row in rows])["questions"] == 30
    missing = [{**row, "question_id": math.nan if index % 2 else None} for index, row in enumerate(rows)]
    assert agreed(command, tmp_path, missing)["questions"] == 60
