"""VisIT-Bench's files in their public forms, with own texts: rows and judged pairs, as one reads them by hand."""

import csv
import io
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from tests.cli.conftest import Command
from tests.support.damaged_documents import check_rows, mangled
from tests.support.examples import example_count

from gradewire_cli.problems import InputError
from gradewire_cli.rows.official.human_labels import BEM_LOG
from gradewire_cli.rows.official.visit_bench import answers, judged_pairs

IMAGES = "https://images.example/visit_images"
DATA_SET: list[dict[str, Any]] = [
    {
        "instruction_category": "Animals",
        "image": f"{IMAGES}/1_cat.png",
        "visual": "",
        "instruction": "What is on the mat?",
        "gpt4_prediction": "A cat is on the mat.",
        "image_dense_captions": "A grey cat sits on a mat.",
        "reference_output": "cat",
        "human_ratings_gpt4_correct": "TRUE",
        "human_ratings_problem_in_caption": "FALSE",
        "human_ratings_problem_in_gpt4": "FALSE",
        "public_images_metadata": "{}",
    },
    {
        "instruction_category": "Counting",
        "image": f"{IMAGES}/2_eggs.png",
        "visual": "",
        "instruction": 'How many eggs, "all" in all?',
        "gpt4_prediction": "There are six eggs.",
        "image_dense_captions": "Six eggs, in a box.",
        "reference_output": "",
        "human_ratings_gpt4_correct": "True",
        "human_ratings_problem_in_caption": "False",
        "human_ratings_problem_in_gpt4": "True",
        "public_images_metadata": "{}",
    },
    {"instruction": "Wrong?", "image": "3.png", "gpt4_prediction": "no", "human_ratings_gpt4_correct": "FALSE"},
    {
        "instruction": "Caption?",
        "image": "4.png",
        "human_ratings_gpt4_correct": "TRUE",
        "human_ratings_problem_in_caption": "TRUE",
    },
]
COLUMNS = list(DATA_SET[0])


def as_csv(rows: list[dict[str, Any]], columns: list[str]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def pair(model_a: str, said_a: Any, model_b: str, said_b: Any, instruction: int = 0, **more: Any) -> dict[str, Any]:
    asked = DATA_SET[instruction]
    return {
        "image_url": asked["image"],
        "instruction": asked["instruction"],
        "instruction_category": asked["instruction_category"],
        "A": said_a,
        "B": said_b,
        "A_model": model_a,
        "B_model": model_b,
        **more,
    }


WITH_REFERENCES = {"reference": "A cat is on the mat.", "image_dense_caption": "A grey cat sits on a mat."}
PAIRS = [
    pair("llava13b_output", "A cat.", "otter", "A dog.", **WITH_REFERENCES),
    pair("otter", "A dog.", "human_verified_reference", "A cat is on the mat.", **WITH_REFERENCES),
    pair("llava13b_output", "Six.", "otter", float("nan"), 1, reference="There are six eggs."),
]


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def written(name: str, content: str | list[Any]) -> str:
        lines = content if isinstance(content, str) else "".join(json.dumps(row) + "\n" for row in content)
        (tmp_path / name).write_text(lines)
        return str(tmp_path / name)

    return written


def rows_of(path: str, **options: str) -> list[dict[str, Any]]:
    return [dict(record.fields or {}) for record in answers(path, **options)]


def test_predictions_of_one_model_without_what_the_paper_leaves_out(write: Any) -> None:
    path = write(
        "mplug.csv",
        as_csv(
            [{**row, "mPLUG-Owl prediction": f"{number}!"} for number, row in enumerate(DATA_SET)],
            [*COLUMNS, "mPLUG-Owl prediction"],
        ),
    )
    found = rows_of(path)
    assert [(row["model"], row["prediction"]) for row in found] == [
        ("mPLUG-Owl prediction", "0!"),
        ("mPLUG-Owl prediction", "1!"),
    ]
    key = found[0]["question_id"]
    assert key.startswith("1_cat-")
    assert found[0] == {
        "id": f"{key}/mPLUG-Owl prediction",
        "question_id": key,
        "question": "What is on the mat?",
        "group": "Animals",
        "references": ["A cat is on the mat."],
        "captions": ["A grey cat sits on a mat."],
        "image": f"{IMAGES}/1_cat.png",
        "model": "mPLUG-Owl prediction",
        "prediction": "0!",
    }


def test_several_models_in_one_table_and_an_answer_that_is_missing(write: Any) -> None:
    rows = [{**DATA_SET[0], "a_output": "x", "b prediction": "nan"}]
    assert [
        (row["model"], row["prediction"])
        for row in rows_of(write("two.csv", as_csv(rows, [*COLUMNS, "a_output", "b prediction"])))
    ] == [("a_output", "x"), ("b prediction", None)]


def test_a_table_with_four_columns_takes_the_rest_from_the_data_sets_file(write: Any) -> None:
    own = [
        {name: row[name] for name in ("instruction", "image")}
        | {"instruction_category": "", "my model prediction": "x"}
        for row in DATA_SET
    ]
    path = write("mine.csv", as_csv(own, ["instruction", "instruction_category", "image", "my model prediction"]))
    assert [row["references"] for row in rows_of(path)] == [[], [], [], []]
    found = rows_of(path, questions=write("single_image.csv", as_csv(DATA_SET, COLUMNS)))
    assert [row["references"] for row in found] == [["A cat is on the mat."], ["There are six eggs."]]
    assert found[0]["captions"] == ["A grey cat sits on a mat."]


def test_answers_of_pairs_come_once_with_the_id_of_the_table(write: Any) -> None:
    found = rows_of(write("pairs.jsonl", PAIRS))
    table = rows_of(write("t.csv", as_csv([{**row, "m_output": "x"} for row in DATA_SET], [*COLUMNS, "m_output"])))
    assert [(row["question_id"], row["model"], row["prediction"]) for row in found] == [
        (table[0]["question_id"], "llava13b_output", "A cat."),
        (table[0]["question_id"], "otter", "A dog."),
        (table[0]["question_id"], "human_verified_reference", "A cat is on the mat."),
        (table[1]["question_id"], "llava13b_output", "Six."),
        (table[1]["question_id"], "otter", None),
    ]
    assert found[0]["references"] == ["A cat is on the mat."]
    assert (found[0]["captions"], "captions" in found[3]) == (["A grey cat sits on a mat."], False)
    assert found[0]["group"] == "Animals"


def test_answers_by_model_of_one_instruction(write: Any) -> None:
    entry = {
        "id": "vb-1",
        "instruction": "Say.",
        "family": "vcr",
        "caption": "c",
        "reference": "r",
        "answers": {"a": "x", "b": ""},
    }
    first, second = rows_of(write("dev.jsonl", [entry]))
    assert first == {
        "id": "vb-1/a",
        "question_id": "vb-1",
        "question": "Say.",
        "group": "vcr",
        "references": ["r"],
        "captions": ["c"],
        "image": None,
        "model": "a",
        "prediction": "x",
    }
    assert (second["model"], second["prediction"]) == ("b", "")


def test_several_pictures_and_their_captions(write: Any) -> None:
    row = {
        "instruction_category": "rcc",
        "images": '["https://i.example/450_a.png", "https://i.example/451_b.png"]',
        "is_multiple_images": "True",
        "instruction": "What differs?",
        "gpt4_prediction": "The colour.",
        "images_dense_captions": '["Red.", "Blue.", NaN, NaN]',
        "images_blip2_captions": "[]",
        "otter_output": "Nothing.",
    }
    (found,) = rows_of(write("multi.csv", as_csv([row], list(row))))
    assert found["question_id"].startswith("450_a-")
    assert found["captions"] == ["Red.", "Blue."]
    assert found["references"] == ["The colour."]


def test_verdicts_of_both_orders_make_a_pair(write: Any) -> None:
    judged = [
        {**PAIRS[0], "auto_evaluation_result": ["llava13b_output", "llava13b_output"], "engine": "gpt-4"},
        {**PAIRS[0], "auto_evaluation_result": ["otter", "otter"], "engine": "gpt-4"},
        {**PAIRS[1], "auto_evaluation_result": ["tie", "human_verified_reference"], "engine": "gpt-4"},
        {**PAIRS[2], "auto_evaluation_result": ["otter", "llava13b_output"], "engine": "gpt-4"},
    ]
    found = [dict(record.fields or {}) for record in judged_pairs(write("head2head.json", json.dumps(judged)))]
    assert [(row["model_a"], row["winner"]) for row in found] == [
        ("llava13b_output", "model_a"),
        ("otter", "model_b"),
        ("llava13b_output", "tie"),
    ], "of two rows of one pair, the first counts; a tie and a win are a win"
    assert found[1]["orders"] == [{"first": "model_a", "winner": "tie"}, {"first": "model_b", "winner": "model_b"}]
    assert (found[0]["by"], found[0]["response_a"], found[2]["response_b"]) == ("gpt-4", "A cat.", "")


def test_votes_of_people_on_one_pair_are_one_row(write: Any) -> None:
    rows = [
        pair("a", "x", "b", "y") | {"model_selection.A": "TRUE", "model_selection.B": "FALSE"},
        pair("b", "y", "a", "x") | {"model_selection.A": "TRUE", "model_selection.B": "FALSE"},
        pair("a", "x", "b", "y") | {"model_selection.A": "FALSE", "model_selection.B": "FALSE"},
        pair("a", "x", "b", "y", 1) | {"model_selection.A": "FALSE", "model_selection.B": "TRUE"},
    ]
    path = write("human.csv", as_csv(rows, list(rows[0])))
    found = [
        dict(record.fields or {}) for record in judged_pairs(path, questions=write("d.csv", as_csv(DATA_SET, COLUMNS)))
    ]
    assert [row["votes"] for row in found] == [["A", "B", None], ["B"]]
    assert found[0]["references"] == ["A cat is on the mat."]


def test_files_without_verdicts_have_no_judged_pairs(write: Any) -> None:
    assert list(judged_pairs(write("pairs.jsonl", PAIRS))) == []
    assert list(judged_pairs(write("t.csv", as_csv(DATA_SET, COLUMNS)))) == []


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (as_csv(DATA_SET, COLUMNS), "has no column with a model's answers"),
        (
            as_csv([{**DATA_SET[0], "x_output": "1", "comment": "2"}], [*COLUMNS, "x_output", "comment"]),
            "has the column comment",
        ),
        ('{"question": "x", "prediction": "y"}\n', "lacks instruction"),
    ],
)
def test_another_file_is_refused_with_the_reason(write: Any, content: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        rows_of(write("x.csv", content))


@pytest.mark.parametrize(
    "entry", [{"id": "v", "instruction": "i", "caption": "c", "answers": {"a": "x"}}, {**PAIRS[0]}, {**DATA_SET[0]}]
)
def test_another_reader_names_this_one(write: Any, entry: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="Use --from visit-bench"):
        list(BEM_LOG.read(write("visit.jsonl", [entry])))


def test_a_data_sets_file_without_references_is_refused(write: Any) -> None:
    with pytest.raises(InputError, match="no row has a reference"):
        rows_of(write("pairs.jsonl", PAIRS), questions=write("q.jsonl", [{"instruction": "x"}]))


@settings(max_examples=example_count(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    document=mangled(
        [
            {**PAIRS[0], "auto_evaluation_result": ["otter", "tie"]},
            {**PAIRS[1], "model_selection.A": True, "model_selection.B": False},
            {"id": "v", "instruction": "i", "answers": {"a": "x"}, "caption": ["c"], "reference": "r"},
        ]
    )
)
@pytest.mark.parametrize("read", [answers, judged_pairs])
def test_damaged_files_are_read_to_the_end_or_refused(tmp_path: Path, document: Any, read: Any) -> None:
    path = tmp_path / "damaged.json"
    path.write_text(json.dumps(document))
    if read is answers:
        check_rows(read, path)
        return
    try:
        found = list(read(str(path)))
    except InputError as error:
        assert str(path) in error.format_message()  # noqa: PT017 - to be refused is one of two good ends
        return
    assert [record.index for record in found] == list(range(len(found)))


def test_score_prints_means_by_model(command: Command, write: Any, tmp_path: Path) -> None:
    path = write(
        "dev.jsonl",
        [
            {"id": f"v{number}", "instruction": "Say.", "reference": "r", "answers": {"a": "x", "b": "y"}}
            for number in range(3)
        ],
    )
    run = partial(command, "score", path, "--metrics", "rouge_l", "--out", tmp_path / "out.jsonl")
    done = run("--from", "visit-bench")
    assert done.exit_code == 0, done.output
    assert "rouge_l by model" in done.stderr
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 6
