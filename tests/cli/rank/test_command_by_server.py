"""`gradewire rank` and `GroupReward` with the real engine, whose judge is a chat server over a real socket."""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.cli.conftest import read_rows, write_rows

from gradewire import Candidates, Client, Status
from gradewire.api import embedded_transport
from gradewire.ranking import RankingCost
from gradewire.rewards import GroupReward, RewardSample
from gradewire_cli.group import gradewire


class Judging(BaseHTTPRequestHandler):
    """An OpenAI-compatible server that names the longer answer, ties equally long ones, and counts tokens."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._reply({"data": [{"id": "m", "owned_by": "somebody"}]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.asked += 1  # type: ignore[attr-defined]
        shown = next(each["content"] for each in reversed(body["messages"]) if each["role"] == "user")
        first, second = (re.findall(rf"Answer {label}: (.*)", shown)[-1] for label in "AB")
        label = "Hm" if "odd" in first else "tie" if len(first) == len(second) else "AB"[len(second) > len(first)]
        top = {"token": label, "logprob": -0.01}
        choice = {
            "finish_reason": "stop",
            "message": {"role": "assistant", "content": label},
            "logprobs": {"content": [{**top, "top_logprobs": [top]}]},
        }
        self._reply({"choices": [choice], "usage": {"prompt_tokens": 100, "completion_tokens": 1}})

    def _reply(self, body: object) -> None:
        content = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def judge_server() -> Iterator[ThreadingHTTPServer]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Judging) as server:
        server.asked = 0  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def test_answers_that_cannot_be_read_have_their_cost(tmp_path: Path) -> None:
    with judge_server() as server:
        settings = {
            "judge_backend": "openai",
            "judge_url": f"http://127.0.0.1:{server.server_address[1]}/v1",
            "judge_remote_model": "m",
            "model_repository": str(tmp_path),
        }
        with Client(transport=embedded_transport(disk_directory=str(tmp_path / "cache"), **settings)) as client:
            ranking = client.rank([Candidates("Which one?", ["odd one", "odd one out"])])[0]
        assert server.asked == 2  # type: ignore[attr-defined]
    assert ranking.pairs[0].comparison.status is Status.UNPARSABLE
    assert (ranking.cost.verdicts, ranking.cost.prompt_tokens, ranking.cost.generated_tokens) == (2, 200, 2)


def test_a_remote_judge_ranks_lists_at_the_cost_that_the_dry_run_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [
        {
            "id": "one",
            "prompt": "Which one?",
            "answers": ["a red cat", "a cat", "a red cat on a mat", "a dog", "a  cat"],
        },
        {"id": "two", "prompt": "And now?", "answers": ["it rains", "it snows a lot"]},
    ]
    file, out = write_rows(tmp_path / "rows.jsonl", rows), tmp_path / "out.jsonl"
    with judge_server() as server:
        settings = {
            "judge_backend": "openai",
            "judge_url": f"http://127.0.0.1:{server.server_address[1]}/v1",
            "judge_remote_model": "m",
            "model_repository": str(tmp_path),
        }
        for name, value in settings.items():
            monkeypatch.setenv(f"GRADEWIRE_{name.upper()}", value)
        run = ["rank", str(file), "--disk-directory", str(tmp_path / "cache")]
        reckoned = CliRunner().invoke(gradewire, [*run, "--dry-run"])
        assert reckoned.exit_code == 0, reckoned.output
        assert server.asked == 0  # type: ignore[attr-defined]
        assert "compare: 14 calls (7 pairs)" in reckoned.stdout
        done = CliRunner().invoke(gradewire, [*run, "--out", str(out)])
        assert done.exit_code == 0, done.output
        assert server.asked == 14  # type: ignore[attr-defined]
        assert "compared 7 pairs with 14 verdicts, 1400 tokens read and 14 written" in done.stderr
        first, second = read_rows(out.read_text())
        assert [each["score"] for each in first["answers"]] == [0.75, 0.0, 1.0, 0.0, 0.0]
        assert [each["rank"] for each in first["answers"]] == [2, 3, 1, 3, 3]
        assert (first["answers"][1]["ties"], second["order"]) == (2, [1, 0])

        with GroupReward(embedded_transport(disk_directory=str(tmp_path / "cache"), **settings)) as scorer:
            samples = [RewardSample(answer, [], "Which one?") for answer in rows[0]["answers"]]
            rewards = [reward.value for reward in scorer.score(samples)]
            assert scorer.cost == RankingCost(6, 0, 0, 0, cached_verdicts=12)
        assert rewards == [0.75, 0.0, 1.0, 0.0, 0.0]
        again = CliRunner().invoke(gradewire, [*run, "--judge-prices", "1,1"])
        assert again.stdout == out.read_text()
        assert "compared 7 pairs with 14 verdicts, 14 of them from a cache\n" in again.stderr
        assert ("price" in again.stderr, server.asked) == (False, 14)  # type: ignore[attr-defined]
