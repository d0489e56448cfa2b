"""A reward function for verl (0.9), which needs no file of the user's.

```sh
reward.custom_reward_function.path=pkg://gradewire.rewards.verl
reward.custom_reward_function.name=compute_score
+reward.custom_reward_function.reward_kwargs.address=127.0.0.1:50051
+reward.custom_reward_function.reward_kwargs.policy=exclude
```

verl has no way to leave a sample out: a reward of None ends the run, one of NaN spoils the advantages of its group.
With policy=exclude the reward is NaN, and `gradewire.rewards.verl_plugin` has an advantage estimator that leaves NaN
out.
"""

import math
from typing import Any

from gradewire.errors import InvalidRequest
from gradewire.rewards.framework_settings import shared_scorer
from gradewire.rewards.reward import RewardSample, as_references
from gradewire.rewards.scorer import RewardScorer

# verl passes them where it has a reward model of its own.
_OF_ITS_REWARD_MODEL = ("reward_router_address", "reward_model_tokenizer")
_POLICY_HINT = (
    "verl cannot leave a sample out by itself. Give policy='exclude' and set algorithm.adv_estimator=gradewire_grpo "
    "(docs/guides/rl-rewards.md); or policy='raise', 'hold' or 'value' together with empty_value, the reward of an "
    "answer that is empty"
)


async def compute_score(
    data_source: str,  # noqa: ARG001 - verl passes it
    solution_str: str,
    ground_truth: Any,
    extra_info: dict[str, Any] | None = None,
    **settings: Any,
) -> dict[str, Any]:
    """Return the reward of one response, as verl's reward managers call for it.

    Args:
        data_source: Not read.
        solution_str: The response, decoded.
        ground_truth: Right answer, or several.
        extra_info: Of the row; its `question` is given to the metric.
        **settings: As `shared_scorer`; `policy` is needed.

    Returns:
        `score` (NaN: left out), and the status, reason, answer, metric line and digest as texts.

    Raises:
        InvalidRequest: A setting is wrong, or does not say what becomes of failures.
        GradewireError: As `RewardScorer.ascore`.
    """
    scorer = verl_scorer({name: value for name, value in settings.items() if name not in _OF_ITS_REWARD_MODEL})
    question = str((extra_info or {}).get("question") or "")
    reward = await scorer.ascore_one(RewardSample(solution_str, as_references(ground_truth), question))
    return {"score": math.nan if reward.value is None else reward.value, **reward.to_info()}


def verl_scorer(settings: dict[str, Any]) -> RewardScorer:
    """Return the scorer of this process; raise InvalidRequest if a sample might have to be left out and cannot be."""
    if "policy" not in settings:
        raise InvalidRequest(f"policy is missing: {_POLICY_HINT}")
    scorer = shared_scorer(settings)
    failures = scorer.failures
    if failures.policy != "exclude" and failures.empty_value is None:
        raise InvalidRequest(f"empty_value is missing: {_POLICY_HINT}")
    return scorer
