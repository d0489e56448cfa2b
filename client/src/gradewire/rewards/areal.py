"""Reward functions for AReaL (1.0).

AReaL runs `reward_fn` in a process pool, waits at most 15 s, tries four times, and then uses a reward of 0. `use_in`
replaces AReaL's wrapper with an asynchronous wrapper without a pool. For a sample without a reward, this wrapper raises
RewardExcluded, so that AReaL rejects the trajectory.

```python
workflow = RLVRWorkflow(reward_fn=reward_fn, …)  # AReaL would wrap a name again in each episode
use_in(workflow, address="127.0.0.1:50051")
```
"""

from typing import Any, Protocol

from gradewire.rewards.framework_settings import question_in, reference_name, shared_scorer
from gradewire.rewards.reward import Reward, RewardExcluded, RewardSample, as_references
from gradewire.rewards.scorer import RewardScorer

# AReaL's limit is 15 s, part of which the process pool needs.
DEADLINE_S = 10.0


class Workflow(Protocol):
    """The attribute of AReaL's workflows that `use_in` replaces."""

    async_reward_fn: Any


def reward_fn(prompt: str, completions: str, prompt_ids: list[int], completion_ids: list[int], **data: Any) -> float:
    """Return the reward of one completion, for `reward_fn=` in AReaL's pool.

    Environment variables contain the settings; see `shared_scorer`.

    Raises:
        RewardExcluded: The sample has no reward, and the policy excludes such samples.
        GradewireError: See `RewardScorer.ascore`.
    """
    del prompt_ids, completion_ids
    scorer = shared_scorer(deadline_s=DEADLINE_S)
    return _value(scorer.score_one(_sample(scorer, prompt, completions, data)))


class AsyncRewardFn:
    """A replacement for AReaL's wrapper of a reward function. It scores samples of many trajectories in one batch.

    Args:
        **settings: The settings of `shared_scorer`.
    """

    def __init__(self, **settings: Any) -> None:
        self._settings = settings
        shared_scorer(settings)  # report wrong settings now

    async def __call__(
        self, prompt: str, completions: str, prompt_ids: list[int], completion_ids: list[int], **data: Any
    ) -> float:
        """Return the reward of one completion; see `reward_fn`."""
        del prompt_ids, completion_ids
        scorer = shared_scorer(self._settings)
        return _value(await scorer.ascore_one(_sample(scorer, prompt, completions, data)))


def use_in(workflow: Workflow, **settings: Any) -> None:
    """Make a workflow (RLVRWorkflow, VisionRLVRWorkflow, MultiTurnWorkflow) score on the workflow's event loop.

    Args:
        workflow: A workflow whose `reward_fn` is a function.
        **settings: The settings of `shared_scorer`.

    Raises:
        InvalidRequest: A setting is wrong.
    """
    workflow.async_reward_fn = AsyncRewardFn(**settings)


def _sample(scorer: RewardScorer, prompt: str, completion: str, data: dict[str, Any]) -> RewardSample:
    question = data.get("question") or question_in(data.get("messages") or prompt)
    references = as_references(data[reference_name(data, scorer.reference_column)])
    return RewardSample(completion, references, str(question), columns=tuple(data))


def _value(reward: Reward) -> float:
    if reward.value is None:
        raise RewardExcluded(f"the sample has no reward and must be left out: {reward.reason}", {reward.status: 1})
    return reward.value
