import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from langfuse import Langfuse
from tests_frameworks.evaluation.rows import ANSWERS, COMPLETION, ITEMS

from gradewire.integrations.evaluation.langfuse import gradewire_evaluator

DATA = [{"input": item.question, "expected_output": list(item.references)} for item in ITEMS]


@pytest.fixture
def client() -> Iterator[Langfuse]:
    """It runs experiments, and sends nothing."""
    client = Langfuse(tracing_enabled=False)
    yield client
    client.shutdown()


def run(client: Langfuse, evaluator: Any, data: list[dict[str, Any]]) -> list[dict[str, Any]]:
    result = client.run_experiment(
        name="pets", data=data, task=lambda *, item, **_: ANSWERS[item["input"]], evaluators=[evaluator]
    )
    shown = {item.item["input"]: {score.name: score for score in item.evaluations} for item in result.item_results}
    return [shown[row["input"]] for row in data]


def test_an_experiment_has_the_servers_scores_and_no_number_for_an_empty_output(
    client: Langfuse, expected: list[Any]
) -> None:
    right, wrong, empty = run(client, gradewire_evaluator(), DATA)

    assert [right["gradewire"].value, wrong["gradewire"].value] == pytest.approx(expected[:2], abs=2e-4)
    labels = [scores["gradewire_label"].value for scores in (right, wrong, empty)]
    assert labels == ["right", "uncertain", "EMPTY_PREDICTION"]
    assert set(empty) == {"gradewire_label"}
    assert right["gradewire"].comment.startswith("correctness gives")
    assert len(right["gradewire"].metadata["digest"]) == 64


class Recorder(BaseHTTPRequestHandler):
    """Takes what a client of Langfuse sends, for its server itself needs four data bases."""

    scores: list[dict[str, Any]]

    def do_GET(self) -> None:
        project = {"id": "project", "name": "pets", "metadata": {}, "organization": {"id": "us", "name": "us"}}
        self._answer({"data": [project]})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        scores = json.loads(body) if self.path == "/api/public/scores" else []
        self.scores += scores
        self._answer({"accepted": len(scores), "rejected": 0, "errors": []})

    def _answer(self, body: dict[str, Any]) -> None:
        text = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def recorder() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    scores: list[dict[str, Any]] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("ScoreRecorder", (Recorder,), {"scores": scores}))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", scores
    server.shutdown()
    thread.join()
    server.server_close()


def test_scores_are_sent_with_sentence_and_line(recorder: tuple[str, list[Any]], expected: list[Any]) -> None:
    address, sent = recorder
    client = Langfuse(public_key="pk-recorded", secret_key="sk-recorded", base_url=address)  # noqa: S106 - made up

    run(client, gradewire_evaluator(), DATA)
    client.flush()
    client.shutdown()

    numbers = [score for score in sent if score["name"] == "gradewire"]
    assert sorted(score["value"] for score in numbers) == pytest.approx(sorted(expected[:2]), abs=2e-4)
    assert all(score["dataType"] == "NUMERIC" and score["comment"] for score in numbers)
    assert all(score["metadata"]["metric_line"].startswith("correctness") for score in numbers)
    labels = [score["value"] for score in sent if score["name"] == "gradewire_label"]
    assert sorted(labels) == ["EMPTY_PREDICTION", "right", "uncertain"]


async def test_the_question_may_stand_among_other_inputs_and_one_answer_may_be_a_text() -> None:
    evaluator = gradewire_evaluator("exact_match", name="match")

    number, label = await evaluator(input={"question": "What?"}, output="a cat", expected_output="cat", metadata=None)

    assert (number.name, number.value, label.name, label.value) == ("match", 1.0, "match_label", "right")


def test_without_a_server_no_item_has_a_number(client: Langfuse, nobody: str) -> None:
    for scores in run(client, gradewire_evaluator(address=nobody, deadline_s=0.3), DATA):
        assert set(scores) == {"gradewire_label"}
        assert scores["gradewire_label"].value == "UNAVAILABLE"


def test_an_item_without_an_expected_output_has_no_score_at_all(client: Langfuse) -> None:
    assert run(client, gradewire_evaluator(), [{"input": ITEMS[0].question}]) == [{}]


@pytest.mark.parametrize(("extraction", "score"), [(None, 0.0), ("auto", 1.0)])
async def test_the_final_answer_of_a_completion_is_graded_if_asked_for(extraction: Any, score: float) -> None:
    evaluator = gradewire_evaluator("exact_match", extraction=extraction)

    number, _ = await evaluator(input="What sleeps?", output=COMPLETION, expected_output="a cat")
    assert number.value == score
