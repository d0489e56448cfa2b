"""`gradewire rank` and `GroupReward` with the real engine, whose judge is a chat server over a real socket."""

import itertools
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.cli.conftest import read_rows, write_rows
from tests.support.judges.counting_server import counting_server

from gradewire import Candidates, Client, Status
from gradewire.api import embedded_transport
from gradewire.ranking import RankingCost
from gradewire.rewards import GroupReward, RewardSample
from gradewire_cli.group import gradewire


def label_of(shown: str) -> str:
    """Name the longer answer, tie equally long ones, and do not grade an odd one."""
    first, second = (re.findall(rf"Answer {label}: (.*)", shown)[-1] for label in "AB")
    return "Hm" if "odd" in first else "tie" if len(first) == len(second) else "AB"[len(second) > len(first)]


def judge_at(port: int, repository: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Let commands ask the judge server on this port, with no encoder in the repository, and return the settings."""
    settings = {
        "judge_backend": "openai",
        "judge_url": f"http://127.0.0.1:{port}/v1",
        "judge_remote_model": "m",
        "model_repository": str(repository),
    }
    for name, value in settings.items():
        monkeypatch.setenv(f"GRADEWIRE_{name.upper()}", value)
    return settings


def test_answers_that_cannot_be_read_have_their_cost(tmp_path: Path) -> None:
    with counting_server(label_of, written=1) as server:
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
    with counting_server(label_of, written=1) as server:
        settings = judge_at(server.server_address[1], tmp_path, monkeypatch)
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


def order_of(shown: str) -> str:
    """Put the longer answer first, equally long ones on one rank, and say nothing of use about an odd one."""
    texts = re.findall(r"^Answer \d+: (.*)$", shown, re.MULTILINE)
    if "odd" in texts:
        return "The odd one is best"
    order = sorted(range(len(texts)), key=lambda place: -len(texts[place]))
    signs = [" = " if len(texts[before]) == len(texts[place]) else " > " for before, place in itertools.pairwise(order)]
    return "".join(f"{place + 1}{sign}" for place, sign in zip(order, [*signs, ""], strict=True))


def test_lists_of_answers_are_put_in_order_by_a_remote_judge_at_the_cost_of_the_dry_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [
        {"prompt": "Which?", "answers": ["a red cat", "a cat", "a red cat on a mat", "a dog", "a  cat"]},
        {"prompt": "And now?", "answers": ["it rains", "it snows a lot"]},
        {"prompt": "And here?", "answers": ["odd", "it snows", "it rains"]},
    ]
    file, out = write_rows(tmp_path / "rows.jsonl", rows), tmp_path / "out.jsonl"
    with counting_server(order_of, written=9) as server:
        settings = judge_at(server.server_address[1], tmp_path, monkeypatch)
        run = ["rank", str(file), "--disk-directory", str(tmp_path / "cache"), "--by", "compare:listwise"]
        reckoned = CliRunner().invoke(gradewire, [*run, "--dry-run"])
        assert reckoned.exit_code == 0, reckoned.output
        assert "compare: 10 calls (3 lists)" in reckoned.stdout
        done = CliRunner().invoke(gradewire, [*run, "--out", str(out)])
        assert done.exit_code == 0, done.output
        assert server.asked == 10  # type: ignore[attr-defined]
        assert "compared 3 lists with 10 verdicts, 1000 tokens read and 90 written" in done.stderr
        first, second, third = read_rows(out.read_text())
        assert [each["score"] for each in first["answers"]] == [0.75, 0.0, 1.0, 0.0, 0.0]
        assert [each["rank"] for each in first["answers"]] == [2, 3, 1, 3, 3]
        assert (first["pairs"], first["verdicts"], first["pair_statuses"], second["order"]) == (1, 4, {"OK": 1}, [1, 0])
        assert (third["status"], third["order"], third["pair_statuses"]) == ("UNPARSABLE", [], {"UNPARSABLE": 1})

        with GroupReward(
            embedded_transport(disk_directory=str(tmp_path / "cache"), **settings), "compare:listwise"
        ) as scorer:
            # The same answers in another order are the same questions.
            samples = [RewardSample(answer, [], "Which?") for answer in reversed(rows[0]["answers"])]
            rewards = [reward.value for reward in scorer.score(samples)]
            assert scorer.cost == RankingCost(1, 0, 0, 0, cached_verdicts=4)
        assert rewards == [0.0, 0.0, 1.0, 0.0, 0.75]
        assert server.asked == 10  # type: ignore[attr-defined]
