"""Rewards for verifiers (0.4), the environments of prime-rl.

You can configure them without code, with settings in the environment (`GRADEWIRE_SERVER`, `GRADEWIRE_REWARD_SETTINGS`):

```toml
[env.taskset.task.rewards.gradewire]
fn = "gradewire.rewards.verifiers:reward"
```

In your own task, with settings in code: `await GradewireJudge(GradewireJudgeConfig(metric="smile")).score(task,
trace)`. A sample without a reward raises: verifiers ends the rollout with an error and does not train on its trace.
"""

from typing import Any

from gradewire.errors import needed_by
from gradewire.rewards.framework_settings import reference_name, shared_scorer
from gradewire.rewards.reward import RewardExcluded, RewardSample, as_references

with needed_by("gradewire.rewards.verifiers", "verifiers"):
    from pydantic import Field
    from verifiers.v1.configs.judge import JudgeConfig
    from verifiers.v1.judge import Judge, JudgeView, judge_question, judge_response

__all__ = ["GradewireJudge"]


class GradewireJudgeConfig(JudgeConfig):  # type: ignore[misc]  # verifiers ships no types
    """Settings of the judge. Fields that name a language model are ignored.

    Attributes:
        settings: Settings of `shared_scorer`.
        answer_field: Field of the task with the right answers; empty: the first usual name.
        question_field: Field with the question; empty: the task's prompt.
        view: Part of the rollout to grade.
    """

    id: str = "gradewire"
    settings: dict[str, Any] = Field(default_factory=dict)
    answer_field: str = ""
    question_field: str = ""
    view: JudgeView = "last_reply"


class GradewireJudge(Judge[float, GradewireJudgeConfig]):  # type: ignore[misc]  # as above
    """A judge backed by a gradewire server. `trace.info["gradewire"]` records what was graded, and how."""

    async def score(self, task: Any, trace: Any) -> float:
        """Return the reward of a rollout.

        Raises:
            RewardExcluded: There is no reward, and the policy is to leave the sample out.
            GradewireError: As `RewardScorer.ascore`.
        """
        fields = dict(task)
        references = fields[reference_name(fields, self.config.answer_field or None)]
        question = judge_question(task, self.config.question_field)
        sample = RewardSample(judge_response(trace, self.config.view), as_references(references), question)
        reward = await shared_scorer(self.config.settings).ascore_one(sample)
        trace.info["gradewire"] = reward.to_info()
        if reward.value is None:
            raise RewardExcluded(f"no reward, so the rollout is left out: {reward.reason}", {reward.status: 1})
        return reward.value


async def reward(task: Any, trace: Any) -> float:
    """Return a rollout's reward, for `rewards.NAME.fn` of a task's configuration, with environment settings."""
    return await GradewireJudge(GradewireJudgeConfig()).score(task, trace)
