"""Reward functions for AReaL (1.0).

AReaL runs `reward_fn` in a pool of processes, waits 15 s at most, tries four times, and then uses a reward of 0.
`use_in` replaces its wrapper by an asynchronous one without a pool and without that 0. A sample without a reward raises
RewardExcluded, and AReaL rejects the trajectory.

```python
workflow = RLVRWorkflow(reward_fn=reward_fn, …)  # pass the function: AReaL wraps a name again at each episode
use_in(workflow, metric="smile")
```
"""

from typing import Any, Protocol

from gradewire.rewards.framework_settings import question_in, reference_name, shared_scorer
from gradewire.rewards.reward import Reward, RewardExcluded, RewardSample, as_references

# Below AReaL's 15 s, with some time for its pool.
DEADLINE_S = 10.0


class Workflow(Protocol):
    """The part of AReaL's workflows that this module sets."""

    async_reward_fn: Any


def reward_fn(prompt: str, completions: str, prompt_ids: list[int], completion_ids: list[int], **data: Any) -> float:
    """Return the reward of one completion, for `reward_fn=` in AReaL's pool.

    The environment has the settings (`shared_scorer`). AReaL retries an error three times, then rejects the trajectory.

    Raises:
        RewardExcluded: There is no reward, and the policy is to leave the sample out.
        GradewireError: As `RewardScorer.score`.
    """
    del prompt_ids, completion_ids
    return _value(shared_scorer(deadline_s=DEADLINE_S).score_one(_sample(prompt, completions, data)))


class AsyncRewardFn:
    """A replacement for AReaL's wrapper of a reward function; it gathers rewards of running trajectories.

    Args:
        **settings: Settings of `shared_scorer`.
    """

    def __init__(self, **settings: Any) -> None:
        self._settings = settings
        shared_scorer(settings)  # report wrong settings now

    async def __call__(
        self, prompt: str, completions: str, prompt_ids: list[int], completion_ids: list[int], **data: Any
    ) -> float:
        """Return the reward of one completion, as `reward_fn`."""
        del prompt_ids, completion_ids
        return _value(await shared_scorer(self._settings).ascore_one(_sample(prompt, completions, data)))


def use_in(workflow: Workflow, **settings: Any) -> None:
    """Let a workflow (RLVRWorkflow, VisionRLVRWorkflow, MultiTurnWorkflow) score on its own event loop.

    Args:
        workflow: A workflow whose `reward_fn` is a function.
        **settings: Settings of `shared_scorer`.

    Raises:
        InvalidRequest: A setting is wrong.
    """
    workflow.async_reward_fn = AsyncRewardFn(**settings)


def _sample(prompt: str, completion: str, data: dict[str, Any]) -> RewardSample:
    question = data.get("question") or question_in(data.get("messages") or prompt)
    return RewardSample(completion, as_references(data[reference_name(data, None)]), str(question))


def _value(reward: Reward) -> float:
    if reward.value is None:
        raise RewardExcluded(f"no reward, so the sample is left out: {reward.reason}", {reward.status: 1})
    return reward.value
