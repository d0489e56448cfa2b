"""AReaL's reward functions (tests_frameworks/rewards runs AReaL's own wrapper)."""

from types import SimpleNamespace

import pytest
from tests.client.small_server import SmallServer

from gradewire import InvalidRequest, Status
from gradewire.rewards import RewardExcluded, shared_scorer
from gradewire.rewards.areal import reward_fn, use_in


def test_the_function_for_areals_pool(small_server: SmallServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADEWIRE_SERVER", small_server.address)
    data = {"messages": [{"role": "user", "content": "What?"}], "answer": "a cat"}
    assert reward_fn("prompt", "a dog", [1], [2], **data) == 0.0
    assert reward_fn("prompt", "a cat", [1], [2], **data) == 1.0
    with pytest.raises(RewardExcluded, match="during the thinking") as raised:
        reward_fn("prompt", "<think>hm", [1], [2], **data)
    assert raised.value.counts == {Status.EMPTY_PREDICTION: 1}


async def test_the_one_that_takes_the_place_of_areals_wrapper(small_server: SmallServer) -> None:
    workflow = SimpleNamespace(async_reward_fn=None)
    use_in(workflow, address=small_server.address)
    assert await workflow.async_reward_fn("p", "a cat", [1], [2], answer="a cat", question="What?") == 1.0
    with pytest.raises(RewardExcluded):
        await workflow.async_reward_fn("p", "", [1], [2], answer="a cat")
    await shared_scorer({"address": small_server.address}).aclose()


def test_wrong_settings_are_told_when_they_are_given() -> None:
    with pytest.raises(InvalidRequest, match="no_such"):
        use_in(SimpleNamespace(async_reward_fn=None), metric="smile,no_such")
