"""SQuAD's files: what becomes of each question and prediction, as one reads them by hand."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.cli.conftest import Command, answer, read_rows
from tests.support.damaged_documents import check_rows, mangled

from gradewire.testing import StubTransport
from gradewire_cli.problems import InputError
from gradewire_cli.rows.official.squad import squad_records
from gradewire_proto.v1 import scoring_pb2


def question(identifier: str, *answers: str, **more: Any) -> dict[str, Any]:
    listed = [{"text": text, "answer_start": 0} for text in answers]
    return {"id": identifier, "question": f"Who {identifier}?", "answers": listed, **more}


SQUAD_2 = {
    "version": "v2.0",
    "data": [
        {
            "title": "Mills",
            "paragraphs": [
                {"context": "…", "qas": [question("a1", "Ada", "Ada", "Ada L.", is_impossible=False)]},
                {"context": "…", "qas": [question("n1", is_impossible=True, plausible_answers=[{"text": "Bob"}])]},
            ],
        },
        {"title": "Tides", "paragraphs": [{"context": "…", "qas": [question("a2", "1815")]}]},
    ],
}
PREDICTIONS = {"n1": "", "a1": "Ada", "a2": "in 1815"}
HUGGING_FACE = [
    {
        "id": "a1",
        "question": "Who a1?",
        "title": "Mills",
        "answers": {"text": ["Ada", "Ada L."], "answer_start": [1, 2]},
    },
    {"id": "n1", "question": "Who n1?", "title": "Mills", "answers": {"text": [], "answer_start": []}},
    {"id": "a2", "question": "Who a2?", "title": "Tides", "answers": {"text": ["1815"], "answer_start": [0]}},
]


def read(folder: Path, predictions: Any, questions: Any) -> list[Any]:
    paths = folder / "predictions.json", folder / "predictions.json.questions"
    for path, document in zip(paths, (predictions, questions), strict=True):
        path.write_text(document if isinstance(document, str) else json.dumps(document))
    return list(squad_records(*map(str, paths)))


ROWS = [
    ("n1", "Mills", "Who n1?", [], False, "no answer", ""),
    ("a1", "Mills", "Who a1?", ["Ada", "Ada L."], True, "has answer", "Ada"),
    ("a2", "Tides", "Who a2?", ["1815"], True, "has answer", "in 1815"),
]
NAMES = ("id", "title", "question", "references", "answerable", "answer_type", "prediction")


@pytest.mark.parametrize(
    "questions", [SQUAD_2, HUGGING_FACE, {"data": HUGGING_FACE}, "\n".join(map(json.dumps, HUGGING_FACE))]
)
@pytest.mark.parametrize(
    "predictions", [PREDICTIONS, [{"id": name, "prediction_text": text} for name, text in PREDICTIONS.items()]]
)
def test_every_form_gives_the_same_rows(tmp_path: Path, predictions: Any, questions: Any) -> None:
    rows = read(tmp_path, predictions, questions)
    assert [tuple(row.fields[name] for name in NAMES) for row in rows] == ROWS
    assert [row.fields["question_id"] for row in rows] == ["n1", "a1", "a2"]
    assert [row.index for row in rows] == [0, 1, 2]


def test_missing_unknown_and_broken_predictions_are_named(tmp_path: Path) -> None:
    predictions = [
        {"id": "a1", "prediction_text": "Ada"},
        {"id": "zz", "prediction_text": "?"},
        {"id": "a1", "prediction_text": "Bob"},
        {"id": "n1", "prediction_text": 7},
    ]
    rows = read(tmp_path, predictions, SQUAD_2)
    assert [(row.id, row.problem) for row in rows[1:]] == [
        ("zz", "answers question zz, which is not in the questions file"),
        ("a1", "answers question a1 again, but only prediction 1 counts"),
        ("n1", "has no text as prediction for question n1"),
        ("a2", "has no prediction and is left out of the means"),
    ]
    assert [row.index for row in rows] == list(range(5))


def test_answers_decide_whether_there_is_one_as_in_the_evaluation(tmp_path: Path) -> None:
    found = [question("a1", "Ada", is_impossible=True), question("n1", is_impossible=False)]
    rows = read(tmp_path, {"a1": "", "n1": ""}, found)
    assert [row.fields["answerable"] for row in rows] == [True, False]


@pytest.mark.parametrize(
    ("predictions", "questions", "said"),
    [
        ("7", SQUAD_2, "predictions.json: unknown format"),
        ([{"id": "a1"}], SQUAD_2, "predictions.json: unknown format"),
        (PREDICTIONS, "7", "predictions.json.questions: unknown format"),
        (PREDICTIONS, '{"data": 7}', "predictions.json.questions: unknown format"),
        (PREDICTIONS, '{"data": []}\n{"data', "predictions.json.questions: line 2"),
        (PREDICTIONS, [question("a1"), question("a1")], "question a1 appears twice"),
        (PREDICTIONS, [{"id": "a1", "question": "?"}], "an entry has no id, question or answers"),
        (PREDICTIONS, [question("a1") | {"answers": [7]}], "an entry has no id, question or answers"),
        (PREDICTIONS, {"data": [{"paragraphs": [7]}]}, "an entry has no id, question or answers: null"),
    ],
)
def test_another_format_is_refused(tmp_path: Path, predictions: Any, questions: Any, said: str) -> None:
    with pytest.raises(InputError) as refused:
        read(tmp_path, predictions, questions)
    assert said in refused.value.format_message()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.tuples(mangled(PREDICTIONS), mangled(SQUAD_2) | mangled(HUGGING_FACE)))
def test_damaged_files_are_refused_or_read(tmp_path: Path, documents: tuple[Any, Any]) -> None:
    path = tmp_path / "predictions.json"
    questions = tmp_path / "predictions.json.questions"
    path.write_text(json.dumps(documents[0]))
    questions.write_text(json.dumps(documents[1]))
    check_rows(partial(squad_records, questions=str(questions)), path)


def test_the_command_groups_by_answer_type(command: Command, tmp_path: Path) -> None:
    sent: list[scoring_pb2.ScoreRequest] = []

    def remember(request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
        sent.append(request)
        return answer(request)

    read(tmp_path, PREDICTIONS, SQUAD_2)
    paths = tmp_path / "predictions.json", tmp_path / "predictions.json.questions"
    options = ("--from", "squad", "--questions", paths[1], "--metrics", "token_f1")
    done = command("score", paths[0], *options, stub=StubTransport(remember))
    assert done.exit_code == 0, done.output
    assert [row["input"] for row in read_rows(done.stdout)] == [{"answer_type": row[5]} for row in ROWS]
    assert "token_f1 by answer_type" in done.stderr
    items = {item.id: item for request in sent for item in request.items}
    assert {row[0]: (row[3], row[4]) for row in ROWS} == {
        name: (list(item.references), item.answerable or not item.HasField("answerable"))
        for name, item in items.items()
    }


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--from", "squad"], "--from squad needs --questions FILE"),
        (["--from", "squad", "--questions", "q", "--annotations", "a"], "--annotations needs --from vqa"),
        (["--from", "bem", "--questions", "q"], "--questions needs --from vqa or --from squad"),
        (["--questions", "q"], "--questions needs --from vqa or --from squad"),
    ],
)
def test_wrong_usage(command: Command, tmp_path: Path, options: list[str], said: str) -> None:
    done = command("score", tmp_path / "predictions.json", *options)
    assert done.exit_code == 2
    assert said in done.stderr
