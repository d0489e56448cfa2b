"""verl's own reward loop calls for rewards of a real server, and its advantages leave out what has none.

verl wants an older transformers than other frameworks: it has an environment of its own (`make test-verl`).
"""

import asyncio
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.client.rewards.holding_transport import HoldingTransport
from tests.support.servers.server_process import ServerProcess
from tests_frameworks.rewards.tiny_model import tiny_tokenizer

from gradewire import Client, InvalidRequest
from gradewire._transports.grpc_transport import GrpcTransport
from gradewire.transport import Endpoint

verl = pytest.importorskip("verl", reason="verl has an environment of its own, .venv-verl")

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of Ray, about what verl imports of it
    from omegaconf import OmegaConf
    from verl import DataProto
    from verl.experimental.reward_loop.reward_loop import RewardLoopWorker
    from verl.trainer.ppo.core_algos import compute_grpo_outcome_advantage, get_adv_estimator_fn
    from verl.trainer.ppo.reward import load_reward_manager

    from gradewire.rewards import verl_plugin
    from gradewire.rewards.verl import verl_scorer

pytestmark = pytest.mark.filterwarnings("ignore")  # as above, where verl imports more

ROWS = 512
LENGTH = 6


def said(index: int) -> str:
    if index % 20 == 7:  # 5 % say nothing
        return ""
    late = " red" if index % 10 == 3 else ""  # 10 % are late
    return f"a {('cat', 'dog', 'small cat', 'small dog')[index % 4]} {('sleeps', 'barks')[index % 3 % 2]}{late}"


def batch() -> DataProto:
    tokenizer = tiny_tokenizer()
    prompt = tokenizer("what sleeps there")["input_ids"]
    responses, masks = [], []
    for index in range(ROWS):
        tokens = [*tokenizer(said(index))["input_ids"], tokenizer.eos_token_id]
        padding = LENGTH - len(tokens)
        responses.append(tokens + [tokenizer.pad_token_id] * padding)
        masks.append([1] * (len(prompt) + len(tokens)) + [0] * padding)
    return DataProto.from_dict(
        tensors={
            "prompts": torch.tensor([prompt] * ROWS),
            "responses": torch.tensor(responses),
            "attention_mask": torch.tensor(masks),
        },
        non_tensors={
            "data_source": np.array(["animals"] * ROWS, dtype=object),
            "reward_model": np.array([{"ground_truth": "cat", "style": "rule"} for _ in range(ROWS)], dtype=object),
            "extra_info": np.array([{"split": "train"} for _ in range(ROWS)], dtype=object),
            "raw_prompt": np.array(
                [[{"role": "user", "content": f"What sleeps? {i}"}] for i in range(ROWS)], dtype=object
            ),
        },
    )


def config(directory: Path, manager: dict[str, Any], **settings: Any) -> Any:
    tiny_tokenizer().save_pretrained(directory)
    return OmegaConf.create(
        {
            "actor_rollout_ref": {"model": {"tokenizer_path": str(directory), "path": str(directory)}},
            "algorithm": {"adv_estimator": verl_plugin.ESTIMATOR},
            "reward": {
                "reward_model": {"enable": False},
                "reward_manager": manager,
                "custom_reward_function": {
                    "path": "pkg://gradewire.rewards.verl",
                    "name": "compute_score",
                    "reward_kwargs": settings,
                },
            },
        }
    )


NAIVE = {"source": "register", "name": "naive", "module": None}
OURS = {
    "source": "importlib",
    "name": "GradewireRewardManager",
    "module": {"path": "pkg://gradewire.rewards.verl_plugin"},
}


def late_with_red(settings: dict[str, Any], address: str) -> HoldingTransport:
    """Has the scorer that verl's workers take for these settings be late with what is red."""
    transport = HoldingTransport(GrpcTransport(Endpoint(address)), lambda item: "red" in item.prediction, 60.0)
    scorer = verl_scorer(settings)
    object.__setattr__(scorer._settings, "carrier", transport)
    return transport


@pytest.mark.parametrize("manager", [NAIVE, OURS], ids=["naive", "gradewire"])
def test_512_responses_in_verls_reward_loop(server: ServerProcess, tmp_path: Path, manager: dict[str, Any]) -> None:
    settings = {"address": server.address, "policy": "exclude", "deadline_s": 3.0 + len(manager["name"]) / 100}
    transport = late_with_red(settings, server.address)

    async def run() -> list[dict[str, Any]]:
        worker = RewardLoopWorker(config(tmp_path, manager, **settings))
        return await worker.compute_score_batch(batch())

    outputs = asyncio.run(run())
    values = np.array([output["reward_score"] for output in outputs])
    scored = [index for index in range(ROWS) if index % 20 != 7 and index % 10 != 3]
    with Client(server.address) as client:
        own = client.score([{"references": ["cat"], "prediction": said(index)} for index in scored], "smile")
    assert values[scored].tolist() == [item.scores["smile"].score for item in own]
    assert np.isnan(np.delete(values, scored)).all()
    assert (len(scored), int(np.isnan(values).sum())) == (435, 77)
    statuses = [output["reward_extra_info"]["gradewire_status"] for output in outputs]
    assert (statuses.count("TIMEOUT"), statuses.count("EMPTY_PREDICTION")) == (51, 26)
    asked = {item.question for item in transport.items}
    assert asked == ({""} if manager is NAIVE else {f"What sleeps? {index}" for index in range(ROWS) if said(index)})
    tensor = verl_plugin.GradewireRewardManager.assemble_rm_scores(batch(), values.tolist())
    assert torch.equal(tensor.sum(dim=1).isnan(), torch.tensor(np.isnan(values)))


def rewards(seed: int, *, excluded: bool) -> tuple[torch.Tensor, torch.Tensor, np.ndarray[Any, Any]]:
    generator = torch.Generator().manual_seed(seed)
    scores = torch.rand(64, generator=generator)
    if excluded:
        scores[torch.rand(64, generator=generator) < 0.25] = torch.nan
    tokens = torch.zeros(64, LENGTH)
    tokens[:, -1] = scores
    groups = np.array([f"prompt {index // 8}" for index in range(60)] + ["a", "b", "c", "d"])
    return tokens, torch.ones(64, LENGTH), groups


@pytest.mark.parametrize("by_std", [True, False])
def test_advantages_are_verls_own_where_nothing_is_left_out(by_std: bool) -> None:  # noqa: FBT001 - both ways
    for seed in range(20):
        tokens, mask, groups = rewards(seed, excluded=False)
        ours, _ = get_adv_estimator_fn(verl_plugin.ESTIMATOR)(
            token_level_rewards=tokens, response_mask=mask, index=groups, config={"norm_adv_by_std_in_grpo": by_std}
        )
        own, _ = compute_grpo_outcome_advantage(tokens.clone(), mask, groups, norm_adv_by_std_in_grpo=by_std)
        assert torch.equal(ours, own)


def test_samples_without_a_reward_get_no_advantage_and_move_no_neighbour() -> None:
    for seed in range(20):
        tokens, mask, groups = rewards(seed, excluded=True)
        kept = ~tokens.sum(dim=1).isnan()
        ours, _ = verl_plugin.grpo_without_excluded(tokens, mask, groups)
        own, _ = compute_grpo_outcome_advantage(tokens[kept].clone(), mask[kept], groups[kept.numpy()])
        assert torch.equal(ours[kept], own)
        assert torch.equal(ours[~kept], torch.zeros_like(ours[~kept]))


def test_a_manager_refuses_to_leave_out_what_its_estimator_cannot(tmp_path: Path) -> None:
    wrong = config(tmp_path, OURS, policy="exclude")
    wrong.algorithm.adv_estimator = "grpo"

    async def load() -> None:
        load_reward_manager(wrong, tiny_tokenizer())

    with pytest.raises(InvalidRequest, match="adv_estimator=grpo cannot leave out"):
        asyncio.run(load())


def test_verl_imports_the_plugin_where_it_is_told_to() -> None:
    program = (
        "import verl; from verl.trainer.ppo.core_algos import get_adv_estimator_fn as get; print(get('gradewire_grpo'))"
    )
    told = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "VERL_USE_EXTERNAL_MODULES": "gradewire.rewards.verl_plugin"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert "grpo_without_excluded" in told.stdout, told.stderr[-2000:]
