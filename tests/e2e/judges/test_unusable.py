"""`gradewire score` with a judge that cannot be used: the engine in this process, and an HTTP server that refuses."""

import json
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.cli.conftest import read_rows, write_rows

from gradewire_cli.group import gradewire

Answer = tuple[int, bytes]
LIST = json.dumps({"data": [{"id": "m"}]}).encode()
ROWS = [
    {"id": "ruled", "question": "Is it?", "references": ["yes"], "prediction": "yes"},
    {"id": "empty", "question": "Which?", "references": ["mercury"], "prediction": ""},
    *(
        {"id": f"r{index}", "question": "Which metal?", "references": ["mercury"], "prediction": f"iron {index}"}
        for index in range(20)
    ),
]


def graded(body: dict[str, Any]) -> Answer:
    """The first label that the request asks for, in words alone."""
    label = body["messages"][-1]["content"].rpartition("nothing else: ")[2].partition(",")[0]
    choice = {"message": {"content": label}, "finish_reason": "stop"}
    return 200, json.dumps({"choices": [choice]}).encode()


class Server(ThreadingHTTPServer):
    """A server that says nothing of requests whose sender has left: a run that stops leaves some."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


@contextmanager
def judge_server(answer: Callable[[Any], Answer], models: Answer = (200, LIST)) -> Iterator[tuple[str, list[Any]]]:
    """A judge's server; yields its address and the bodies posted so far. `answer` gets the last of them."""
    posted: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def reply(self, status: int, content: bytes) -> None:
            self.send_response(status)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def do_GET(self) -> None:
            self.reply(*models)

        def do_POST(self) -> None:
            posted.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.reply(*answer(posted[-1]))

        def log_message(self, *_: object) -> None:
            return

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", posted
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def score(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    for name in [name for name in os.environ if name.startswith("GRADEWIRE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GRADEWIRE_MODEL_REPOSITORY", str(tmp_path / "models"))
    file = write_rows(tmp_path / "rows.jsonl", ROWS)

    def run(url: str, metrics: str, *options: str | Path) -> Result:
        judge = ("--judge-url", url, "--judge-remote-model", "m", "--disk-directory", str(tmp_path / "store"))
        return CliRunner().invoke(gradewire, ["score", str(file), "--metrics", metrics, *judge, *map(str, options)])

    return run


def failures(done: Result) -> list[str]:
    """The lines about the judge but for the notes that stand before every run with a judge."""
    lines = done.stderr.splitlines()
    return [line for line in lines if "127.0.0.1" in line and not line.startswith(("reproduce: ", "judge m: "))]


@pytest.mark.parametrize(
    ("refusal", "words"),
    [
        (
            (401, b'{"error": {"message": "Incorrect API key"}}'),
            ("status 401", "--judge-key-env", "'Incorrect API key'"),
        ),
        ((403, b'{"detail": "No access"}'), ("status 403", "--judge-key-env", "'No access'")),
        ((404, b'{"error": {"message": "no model m"}}'), ("status 404", "--judge-remote-model", "'no model m'")),
        (
            (429, b'{"error": {"code": "insufficient_quota", "message": "Pay first"}}'),
            ("is used up (status 429)", "Raise it", "'Pay first'"),
        ),
        ((402, b'{"error": "Insufficient credits"}'), ("is used up (status 402)", "'Insufficient credits'")),
        ((400, b'{"error": {"message": "Say please"}}'), ("every request (status 400)", "'Say please'")),
        ((400, b"<h1>Bad</h1> <p>Request</p>"), ("every request (status 400)", "'Bad Request'")),
        ((200, b"<!doctype html><title>Welcome</title>"), ("a web page", "--judge-url", "'Welcome'")),
    ],
)
def test_a_run_that_only_the_judge_can_score_stops_before_its_first_row(
    score: Callable[..., Result], tmp_path: Path, refusal: Answer, words: tuple[str, ...]
) -> None:
    out = tmp_path / "out.jsonl"
    with judge_server(lambda _: refusal) as (url, _):
        done = score(url, "lave,judge_verdict", "--out", out)
    assert (done.exit_code, done.stdout) == (3, "")
    (line,) = failures(done)
    assert line.startswith("Error: judge_verdict, lave: ")
    assert url in line
    assert [word for word in words if word not in line] == []
    assert line == done.stderr.splitlines()[-1]
    assert not out.exists(), "the same command must work again"


def test_an_address_that_nobody_listens_at_is_named(score: Callable[..., Result], tmp_path: Path) -> None:
    with judge_server(graded) as (url, _):
        pass
    done = score(url, "lave", "--out", tmp_path / "out.jsonl")
    assert done.exit_code == 3, done.output
    (line,) = failures(done)
    assert line.startswith(f"Error: lave: the judge's server at {url} cannot be reached. Check judge_url (--judge-url)")
    assert not (tmp_path / "out.jsonl").exists()


@pytest.mark.parametrize("models", [(200, LIST), (401, b'{"error": "Bad key"}')])
def test_other_metrics_are_scored_and_the_failure_is_reported_once(
    score: Callable[..., Result], models: Answer
) -> None:
    with judge_server(lambda _: (401, b'{"error": "Bad key"}'), models) as (url, _):
        done = score(url, "exact_match,lave,judge_verdict")
    assert done.exit_code == 1, done.output
    (line,) = failures(done)
    assert line.startswith("judge_verdict, lave: ")
    assert "Check judge_token (gradewire score: --judge-key-env). The server's words: 'Bad key'" in line
    rows = read_rows(done.stdout)
    assert [row["scores"]["exact_match"]["score"] for row in rows[:3]] == [1.0, None, 0.0]
    statuses = [row["scores"]["lave"]["status"] for row in rows]
    assert statuses == ["OK", "EMPTY_PREDICTION", *["MODEL_UNAVAILABLE"] * 20]


def test_the_rows_of_a_rule_alone_have_no_mean(score: Callable[..., Result], tmp_path: Path) -> None:
    summary = tmp_path / "summary.json"
    with judge_server(lambda _: (404, b"")) as (url, _):
        done = score(url, "exact_match,lave", "--summary-json", summary, "--group-by", "id")
    metrics = json.loads(summary.read_text())["metrics"]
    lave = metrics["lave"]
    assert (lave["scored"], lave["mean"], lave["share_right"], lave["mean_empty_as_wrong"]) == (1, None, None, None)
    assert metrics["exact_match"]["mean"] == pytest.approx(1 / 21)
    assert "lave: no mean, because 1 of 22 rows needed no judge, and the judge graded none" in done.stderr
    (row,) = [line for line in done.stderr.splitlines() if line.strip().startswith("lave  ")]
    assert row.split()[:3] == ["lave", "1", "-"]


def test_a_judge_that_stops_in_between_ends_the_run_and_the_run_can_go_on(
    score: Callable[..., Result], tmp_path: Path
) -> None:
    out, blocked = tmp_path / "out.jsonl", threading.Event()
    judged: set[str] = set()
    first_judged = threading.Event()

    def answer(body: Any) -> Answer:
        asked = body["messages"][-1]["content"]
        if "iron 7\n" in asked:
            assert first_judged.wait(60)
            blocked.set()
        if blocked.is_set():
            return 403, b'{"error": "Blocked"}'
        # Replies without probabilities count only after the answer to gradewire's own question.
        judged.update(text for text in ("iron 0\n", "iron 1\n", "Is water wet?") if text in asked)
        if len(judged) == 3:
            first_judged.set()
        return graded(body)

    with judge_server(answer) as (url, _):
        done = score(url, "lave", "--out", out)
        assert done.exit_code == 3, done.output
        (line,) = failures(done)
        kept = read_rows(out.read_text())
        assert 0 < len(kept) < len(ROWS)
        assert line.endswith(f"The server's words: 'Blocked'; {len(kept)} rows are in {out}. Continue with --resume")
        statuses = [row["scores"]["lave"]["status"] for row in kept]
        assert set(statuses) <= {"OK", "EMPTY_PREDICTION"}
    with judge_server(graded) as (url, _):
        done = score(url, "lave", "--out", out, "--resume")
    assert done.exit_code == 0, done.output
    assert [row["id"] for row in read_rows(out.read_text())] == [row["id"] for row in ROWS]


def test_a_row_that_a_gateway_limits_is_scored_by_resume_and_a_filtered_row_is_not_asked_again(
    score: Callable[..., Result], tmp_path: Path
) -> None:
    out, limited = tmp_path / "out.jsonl", threading.Event()
    limited.set()

    def answer(body: Any) -> Answer:
        asked = body["messages"][-1]["content"]
        if "iron 3\n" in asked and limited.is_set():
            error = {"message": "Provider returned error", "code": 429}
            return 200, json.dumps({"id": None, "choices": None, "error": error}).encode()
        if "iron 5\n" in asked:
            return 400, b'{"error": {"message": "filtered", "code": "content_filter", "status": 400}}'
        return graded(body)

    with judge_server(answer) as (url, posted):
        done = score(url, "lave", "--out", out, "--retries", "0")
        assert done.exit_code == 1, done.output
        statuses = {row["id"]: row["scores"]["lave"]["status"] for row in read_rows(out.read_text())}
        assert (statuses.pop("r3"), statuses.pop("r5")) == ("UNAVAILABLE", "UNPARSABLE")
        assert set(statuses.values()) == {"OK", "EMPTY_PREDICTION"}
        limited.clear()
        posted.clear()
        done = score(url, "lave", "--out", out, "--resume")
        assert done.exit_code == 1, done.output
    rows = read_rows(out.read_text())
    assert [row["id"] for row in rows] == [row["id"] for row in ROWS]
    assert {row["id"]: row["scores"]["lave"]["status"] for row in rows}["r3"] == "OK"
    texts = [body["messages"][-1]["content"] for body in posted]
    assert any("iron 3\n" in text for text in texts)
    assert not any("iron 5\n" in text for text in texts)
