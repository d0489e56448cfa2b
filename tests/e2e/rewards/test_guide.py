"""The Python lines of the guide to rewards run on a real server."""

import asyncio
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.e2e.client.test_tls import write_certificate
from tests.support.servers.server_process import ServerProcess

import gradewire
from gradewire.rewards import RewardSample

PAGE = Path(__file__).parents[3] / "docs" / "guides" / "rl-rewards.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)


def run(sign: str, server: ServerProcess) -> dict[str, Any]:
    """Runs the one block that has the sign; returns its names."""
    (text,) = [block for block in BLOCKS if sign in block]
    names: dict[str, Any] = {}
    exec(compile(text.replace("127.0.0.1:50051", server.address), str(PAGE), "exec"), names)  # noqa: S102 - ours
    return names


def test_every_block_is_run_here() -> None:
    assert len(BLOCKS) == 6


def test_the_core(server: ServerProcess, capsys: pytest.CaptureFixture[str]) -> None:
    run("RewardSample(", server)
    right, undecided = capsys.readouterr().out.splitlines()
    assert right.startswith("0.9")
    assert " OK a cat correctness/" in right
    assert undecided.strip() == "None EMPTY_PREDICTION"


def test_a_guarded_server(server: ServerProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with run("Tls(", server)["scorer"] as scorer:
        with pytest.raises(gradewire.InvalidRequest, match=r"tls: ca\.pem cannot be read"):
            scorer.score_one(RewardSample("a cat", ["a cat"]))
        write_certificate(tmp_path).joinpath("cert.pem").rename("ca.pem")
        with pytest.raises(gradewire.ServerUnreachable, match="does not use TLS, but this client does"):
            scorer.score_one(RewardSample("a cat", ["a cat"]))


def test_trl(server: ServerProcess) -> None:
    reward = run("TrlReward(RewardScorer", server)["reward"]
    (value,) = reward(prompts=["What?"], completions=["a cat"], answer=["a cat"])
    assert value > 0.9
    reward._scorer.close()


def test_completions_of_one_prompt(server: ServerProcess) -> None:
    names = run("GroupReward(", server)
    with names["scorer"] as scorer:
        cost = scorer.plan([RewardSample(f"a cat, {place}", [], question="What?") for place in range(8)]).cost
        assert (cost.pairs, cost.verdicts) == (28, 56)
        # This server has no judge, which is a setting to mend and no reward.
        with pytest.raises(gradewire.GradewireError, match="this server has no judge"):
            names["reward"](prompts=["What?"] * 8, completions=[f"a cat, {place}" for place in range(8)])


async def test_areal(server: ServerProcess) -> None:
    workflow = SimpleNamespace(async_reward_fn=None)
    run("without_pool", server)["without_pool"](workflow)
    assert await workflow.async_reward_fn("p", "a cat", [1], [2], answer="a cat") > 0.9


async def test_posts(server: ServerProcess) -> None:
    names = run("get_reward", server)
    body = {"query": ["What? a cat", "What? "], "prompts": ["What? "] * 2, "labels": ["a cat"] * 2}
    status, _, reply = await asyncio.wait_for(names["get_reward"](body), 60)
    right, empty = reply["rewards"]
    assert (status, right > 0.9, empty) == (200, True, 0.1)
    await names["scorer"].aclose()
