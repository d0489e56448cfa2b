"""Rewards for verifiers (0.4), the environment library that prime-rl uses.

You can configure a reward without code, with settings in environment variables (`GRADEWIRE_SERVER`,
`GRADEWIRE_REWARD_SETTINGS`):

```toml
[env.taskset.task.rewards.gradewire]
fn = "gradewire.rewards.verifiers:reward"
```

In your own task, with settings in code: `await GradewireJudge(GradewireJudgeConfig(settings={"uncertain":
"exclude"})).score(task, trace)`. For a sample without a reward, the judge raises RewardExcluded. verifiers then ends
the rollout with an error and does not train on the trace.
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
    """The judge's settings. Inherited fields that name a language model are ignored.

    Attributes:
        settings: The settings of `shared_scorer`.
        answer_field: The task's field with the right answers; if empty, the setting `reference_column`, or the field
            with a usual name.
        question_field: The task's field with the question; if empty, the task's prompt.
        view: The part of the rollout to grade.
    """

    id: str = "gradewire"
    settings: dict[str, Any] = Field(default_factory=dict)
    answer_field: str = ""
    question_field: str = ""
    view: JudgeView = "last_reply"


class GradewireJudge(Judge[float, GradewireJudgeConfig]):  # type: ignore[misc]  # as above
    """A judge backed by a gradewire server. It records the answer, status and metric in `trace.info["gradewire"]`."""

    async def score(self, task: Any, trace: Any) -> float:
        """Return a rollout's reward.

        Raises:
            RewardExcluded: The rollout has no reward, and the policy excludes such samples.
            GradewireError: See `RewardScorer.ascore`.
        """
        fields = dict(task)
        scorer = shared_scorer(self.config.settings)
        references = fields[reference_name(fields, self.config.answer_field or scorer.reference_column)]
        question = judge_question(task, self.config.question_field)
        completion = judge_response(trace, self.config.view)
        sample = RewardSample(completion, as_references(references), question, columns=tuple(fields))
        reward = await scorer.ascore_one(sample)
        trace.info["gradewire"] = reward.to_info()
        if reward.value is None:
            raise RewardExcluded(f"the rollout has no reward and must be left out: {reward.reason}", {reward.status: 1})
        return reward.value


async def reward(task: Any, trace: Any) -> float:
    """Return a rollout's reward, with settings from the environment. Use this function as `fn` in a task's rewards."""
    return await GradewireJudge(GradewireJudgeConfig()).score(task, trace)
