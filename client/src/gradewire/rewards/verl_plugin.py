"""A reward manager for verl (0.9), and a GRPO advantage estimator that leaves out samples without a reward.

```sh
export VERL_USE_EXTERNAL_MODULES=gradewire.rewards.verl_plugin
# and in the configuration
algorithm.adv_estimator=gradewire_grpo
reward.reward_manager.source=importlib
reward.reward_manager.module.path=pkg://gradewire.rewards.verl_plugin
reward.reward_manager.name=GradewireRewardManager
```
"""

from functools import partial
from typing import Any

from gradewire.errors import InvalidRequest, needed_by
from gradewire.rewards.framework_settings import question_in
from gradewire.rewards.verl import compute_score, verl_scorer

with needed_by("gradewire.rewards.verl_plugin", "verl"):
    from verl.experimental.reward_loop.reward_manager.naive import NaiveRewardManager
    from verl.trainer.ppo.core_algos import register_adv_est

ESTIMATOR = "gradewire_grpo"


class GradewireRewardManager(NaiveRewardManager):  # type: ignore[misc]  # verl ships no types
    """verl's naive reward manager with `compute_score`. It adds the prompt's question and checks the configuration.

    The settings are in `reward.custom_reward_function.reward_kwargs` or, if that is empty, in `reward.reward_kwargs`.

    Raises:
        InvalidRequest: A setting is wrong, or the advantage estimator cannot leave out samples without a reward.
    """

    def __init__(self, config: Any, tokenizer: Any, compute_score: Any = None, **parts: Any) -> None:
        del compute_score  # verl's default function, or ours from the configuration
        function = config.reward.get("custom_reward_function") or {}
        settings = dict(function.get("reward_kwargs") or config.reward.get("reward_kwargs") or {})
        scorer = verl_scorer(settings)
        estimator = (config.get("algorithm") or {}).get("adv_estimator")
        if scorer.failures.policy == "exclude" and estimator != ESTIMATOR:
            raise InvalidRequest(
                f"policy='exclude' returns NaN, which algorithm.adv_estimator={estimator} cannot leave out: use "
                f"{ESTIMATOR}, or a different policy"
            )
        super().__init__(config, tokenizer, partial(_compute_score, **settings), **parts)

    async def run_single(self, data: Any) -> dict[str, Any]:
        """Run verl's method after adding the prompt's question to the extra info."""
        row = data[-1:].non_tensor_batch
        if (prompts := row.get("raw_prompt")) is not None:
            extra_info = row.get("extra_info")
            if extra_info is not None and isinstance(extra_info[0], dict):
                extra_info[0].setdefault("question", question_in(list(prompts[0])))
        result: dict[str, Any] = await super().run_single(data)
        return result


_compute_score = compute_score


@register_adv_est(ESTIMATOR)  # type: ignore[untyped-decorator]  # verl ships no types
def grpo_without_excluded(  # noqa: PLR0913, PLR0917 - verl defines the arguments
    token_level_rewards: Any,
    response_mask: Any,
    index: Any,
    epsilon: float = 1e-6,
    norm_adv_by_std_in_grpo: bool = True,  # noqa: FBT001, FBT002 - verl's signature
    config: Any = None,
    **_: Any,
) -> tuple[Any, Any]:
    """Return GRPO's advantages and returns. A sample without a reward (NaN) gets 0 and does not affect its group.

    If all samples have a reward, verl's `grpo` would return exactly the same values.

    Args:
        token_level_rewards: Tensor of shape (samples, tokens).
        response_mask: Tensor of shape (samples, tokens).
        index: Array of shape (samples,) with each sample's prompt.
        epsilon: Number added to the standard deviation before division.
        norm_adv_by_std_in_grpo: True to divide by the standard deviation; `config` overrides this.
        config: verl's configuration section `algorithm`.
    """
    if config is not None:
        norm_adv_by_std_in_grpo = bool(config.get("norm_adv_by_std_in_grpo", norm_adv_by_std_in_grpo))
    scores = token_level_rewards.sum(dim=-1)
    advantages = scores.new_zeros(scores.shape)
    groups: dict[Any, list[int]] = {}
    for position, prompt in enumerate(index):
        if not scores[position].isnan():
            groups.setdefault(prompt, []).append(position)
    for positions in groups.values():
        group = scores[positions]
        # If a group has only one sample, verl uses the reward itself.
        mean, std = (group.mean(), group.std()) if len(positions) > 1 else (scores.new_zeros(()), scores.new_ones(()))
        centred = group - mean
        advantages[positions] = centred / (std + epsilon) if norm_adv_by_std_in_grpo else centred
    advantages = advantages.unsqueeze(-1) * response_mask
    return advantages, advantages
