"""`answer=final` in JSON, over a real server's gateway."""

from typing import Any

import httpx2
import pytest
from tests.support.servers.gateway import SCORE
from tests.support.servers.server_process import ServerProcess

COMPLETIONS = [
    r"<think>Lyon?</think>It is \boxed{Paris}.",
    "Lyon est grande. La réponse est Paris.",
    "It could be Lyon. The answer is Marseille.",
    "<think>Perhaps Paris, or",
]


def post(server: ServerProcess, answer: str | int) -> httpx2.Response:
    items = [{"references": ["Paris"], "prediction": each} for each in COMPLETIONS]
    metrics: list[Any] = [{"exactMatch": {"answer": answer}}, {"easyMatch": {"answer": answer}}]
    with httpx2.Client(base_url=server.api, trust_env=False, timeout=30) as client:
        return client.post(SCORE, json={"items": items, "metrics": metrics}, headers={"authorization": "Bearer right"})


def test_completions_are_graded_by_their_final_answers(http_server: ServerProcess) -> None:
    reply = post(http_server, "GRADED_ANSWER_FINAL").json()
    lines = [each["line"] for each in reply["provenance"]]
    assert lines == ["exact_match/1?abstention=recognised&answer=final", "easy_match/1?answer=final"]
    found = [[result.get("score") for result in item["results"]] for item in reply["items"]]
    assert found == [[1, 1], [1, 1], [0, 0], [None, None]]
    unanswered = reply["items"][-1]["results"][0]
    assert unanswered["status"] == "STATUS_EMPTY_PREDICTION"
    assert "no final answer, because the completion ends during the thinking" in unanswered["message"]


def test_by_default_the_whole_text_is_graded(http_server: ServerProcess) -> None:
    reply = post(http_server, "GRADED_ANSWER_UNSPECIFIED").json()
    assert [each["line"] for each in reply["provenance"]] == [
        "exact_match/1?abstention=recognised&answer=whole",
        "easy_match/1?answer=whole",
    ]
    found = [[result["score"] for result in item["results"]] for item in reply["items"]]
    assert found == [[0, 0], [0, 1], [0, 0], [0, 1]]


@pytest.mark.parametrize(
    ("answer", "field", "known"),
    [
        ("last", "exactMatch.answer", "GRADED_ANSWER_UNSPECIFIED, GRADED_ANSWER_WHOLE, GRADED_ANSWER_FINAL"),
        (7, "exact_match.answer", "1 (whole), 2 (final)"),
    ],
)
def test_another_value_is_refused_with_the_known_ones(
    http_server: ServerProcess, answer: str | int, field: str, known: str
) -> None:
    reply = post(http_server, answer)
    assert reply.status_code == 400
    assert reply.json()["field"] == f"metrics[0].{field}"
    assert known in reply.json()["detail"]
