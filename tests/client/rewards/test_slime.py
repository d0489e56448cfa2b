"""slime's reward function, over samples with the fields of slime's `Sample` (slime needs GPUs to run)."""

from types import SimpleNamespace
from typing import Any

import pytest
from tests.client.small_server import SmallServer

from gradewire.rewards import RewardExcluded, shared_scorer
from gradewire.rewards.slime import DEADLINE_S, custom_rm


@pytest.fixture(autouse=True)
def _settings(small_server: SmallServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADEWIRE_SERVER", small_server.address)
    small_server.script.score = lambda item: float(item.prediction)


def sample(response: str) -> Any:
    return SimpleNamespace(
        prompt=[{"role": "user", "content": "How much?"}],
        response=response,
        response_length=3,
        label="1",
        metadata={"rm_type": ""},
        loss_mask=None,
        remove_sample=False,
    )


async def test_single_samples_get_a_number() -> None:
    one = sample(r"\boxed{0.25}")
    assert await custom_rm(None, one, evaluation=False) == 0.25
    assert one.metadata["gradewire_status"] == "OK"
    with pytest.raises(RewardExcluded, match="--group-rm"):
        await custom_rm(None, sample(""))
    await shared_scorer(deadline_s=DEADLINE_S).aclose()


async def test_of_a_group_a_sample_without_a_reward_is_masked_and_moves_no_mean() -> None:
    group = [sample("0.25"), sample("<think>"), sample("0.75")]
    assert await custom_rm(None, group) == [0.25, 0.5, 0.75]
    assert [one.remove_sample for one in group] == [False, True, False]
    assert [one.loss_mask for one in group] == [None, [0, 0, 0], None]
    await shared_scorer(deadline_s=DEADLINE_S).aclose()


async def test_with_a_comparison_the_samples_of_a_prompt_are_compared(
    small_server: SmallServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRADEWIRE_REWARD_SETTINGS", '{"by": "compare", "policy": "exclude"}')
    small_server.script.winner = lambda pair: "a" if pair.answer_a > pair.answer_b else "b"
    group = [sample("0.25"), sample("<think>"), sample("0.75"), sample("0.5")]
    assert await custom_rm(None, group) == [0.0, 0.5, 1.0, 0.5]
    assert [one.remove_sample for one in group] == [False, True, False, False]
    assert group[0].metadata["gradewire_line"] == "compare/1"
    with pytest.raises(RewardExcluded, match="give 2 to 64 answers, not 1"):
        await custom_rm(None, sample("0.25"))


async def test_a_group_without_any_reward_stops() -> None:
    with pytest.raises(RewardExcluded):
        await custom_rm(None, [sample(""), sample("")])
