"""A reward function for verl (0.9), which you can name in the configuration without writing a file.

```sh
reward.custom_reward_function.path=pkg://gradewire.rewards.verl
reward.custom_reward_function.name=compute_score
+reward.custom_reward_function.reward_kwargs.address=127.0.0.1:50051
+reward.custom_reward_function.reward_kwargs.policy=exclude
```

verl itself cannot leave a sample out. A reward of None ends the run, and NaN spoils the advantages of the whole group.
With policy=exclude, a missing reward is NaN, and the advantage estimator in `gradewire.rewards.verl_plugin` leaves the
sample out.
"""

import math
from typing import Any

from gradewire.errors import InvalidRequest
from gradewire.rewards.framework_settings import shared_scorer
from gradewire.rewards.reward import RewardSample, as_references
from gradewire.rewards.scorer import RewardScorer

# verl passes these arguments if it runs a reward model itself.
_OF_ITS_REWARD_MODEL = ("reward_router_address", "reward_model_tokenizer")
_POLICY_HINT = (
    "verl cannot leave a sample out. Set policy='exclude' and algorithm.adv_estimator=gradewire_grpo "
    "(docs/guides/rl-rewards.md), or set policy='raise', 'hold' or 'value', and empty_value, the reward of an empty "
    "answer; uncertain='exclude' needs the first"
)


async def compute_score(
    data_source: str,  # noqa: ARG001 - verl passes it
    solution_str: str,
    ground_truth: Any,
    extra_info: dict[str, Any] | None = None,
    **settings: Any,
) -> dict[str, Any]:
    """Return the reward of one response, for verl's reward managers.

    Args:
        data_source: Ignored.
        solution_str: The decoded response.
        ground_truth: One or more right answers.
        extra_info: The row's extra info. The metric reads its `question`.
        **settings: The settings of `shared_scorer`; `policy` is required.

    Returns:
        `score` (NaN if the sample must be left out), and the strings of `Reward.to_info`.

    Raises:
        InvalidRequest: A setting is wrong, or the policies would leave samples out; see `verl_scorer`.
        GradewireError: See `RewardScorer.ascore`.
    """
    scorer = verl_scorer({name: value for name, value in settings.items() if name not in _OF_ITS_REWARD_MODEL})
    question = str((extra_info or {}).get("question") or "")
    reward = await scorer.ascore_one(RewardSample(solution_str, as_references(ground_truth), question))
    return {"score": math.nan if reward.value is None else reward.value, **reward.to_info()}


def verl_scorer(settings: dict[str, Any]) -> RewardScorer:
    """Return this process's scorer.

    Raises:
        InvalidRequest: `policy` is missing, or a policy other than "exclude" would leave samples out, because
            `empty_value` is missing or `uncertain` is "exclude".
    """
    if "policy" not in settings:
        raise InvalidRequest(f"policy is missing: {_POLICY_HINT}")
    scorer = shared_scorer(settings)
    failures = scorer.failures
    if failures.policy != "exclude" and failures.empty_value is None:
        raise InvalidRequest(f"empty_value is missing: {_POLICY_HINT}")
    if failures.policy != "exclude" and failures.uncertain == "exclude":
        raise InvalidRequest(f"uncertain='exclude' with policy={failures.policy!r}: {_POLICY_HINT}")
    return scorer
