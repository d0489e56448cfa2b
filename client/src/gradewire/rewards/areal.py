"""Reward functions for AReaL (1.0).

AReaL runs `reward_fn` in a pool of processes, ends its wait after 15 s, tries four times, and then takes 0 for the
reward. `use_in` puts an asynchronous one in the wrapper's place, which has neither a pool nor that 0; a sample without
a reward raises RewardExcluded there, and AReaL rejects the trajectory.

```python
workflow = RLVRWorkflow(reward_fn=reward_fn, …)  # the function: what is given by name AReaL wraps at each episode
use_in(workflow, metric="smile")
```
"""

from typing import Any, Protocol

from gradewire.rewards.framework_settings import question_in, reference_name, shared_scorer
from gradewire.rewards.reward import Reward, RewardExcluded, RewardSample, as_references

# Below AReaL's 15 s, with time to spare for its pool.
DEADLINE_S = 10.0


class Workflow(Protocol):
    """The part of AReaL's workflows that is written to."""

    async_reward_fn: Any


def reward_fn(prompt: str, completions: str, prompt_ids: list[int], completion_ids: list[int], **data: Any) -> float:
    """For `reward_fn=`, in AReaL's pool: the reward of one completion.

    Settings are those of the environment (`shared_scorer`). AReaL tries a raised error three times more, and then
    rejects the trajectory.

    Raises:
        RewardExcluded: There is no reward, and the policy is to leave the sample out.
        GradewireError: As `RewardScorer.score`.
    """
    del prompt_ids, completion_ids
    return _value(shared_scorer(deadline_s=DEADLINE_S).score_one(_sample(prompt, completions, data)))


class AsyncRewardFn:
    """In the place of AReaL's wrapper of a reward function; rewards of trajectories under way are gathered.

    Args:
        **settings: As `shared_scorer`.
    """

    def __init__(self, **settings: Any) -> None:
        self._settings = settings
        shared_scorer(settings)  # what is wrong with them is said here

    async def __call__(
        self, prompt: str, completions: str, prompt_ids: list[int], completion_ids: list[int], **data: Any
    ) -> float:
        """As `reward_fn`."""
        del prompt_ids, completion_ids
        return _value(await shared_scorer(self._settings).ascore_one(_sample(prompt, completions, data)))


def use_in(workflow: Workflow, **settings: Any) -> None:
    """Have a workflow (RLVRWorkflow, VisionRLVRWorkflow, MultiTurnWorkflow) ask for rewards on its own event loop.

    Args:
        workflow: Made with any `reward_fn` that is a function.
        **settings: As `shared_scorer`.

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
