"""A reward function for slime, for `--custom-rm-path gradewire.rewards.slime.custom_rm`.

Environment variables contain the settings (`GRADEWIRE_SERVER`, `GRADEWIRE_REWARD_SETTINGS`).

With `--group-rm`, a sample without a reward is left out: its tokens are masked, and its reward is the mean of the
prompt's other rewards. Without `--group-rm`, slime cannot leave a sample out, and the run stops.

With `--group-rm` and a comparison in the settings (`{"by": "compare"}`), the reward is the share of pairs that a sample
wins among the samples of its prompt; see `GroupReward`.
"""

from collections import Counter
from statistics import fmean
from typing import Any

from gradewire.rewards.framework_settings import question_in, shared_group_reward, shared_scorer
from gradewire.rewards.reward import RewardExcluded, RewardSample, as_references

# slime waits at most 120 s for a reward.
DEADLINE_S = 90.0


async def custom_rm(args: Any, sample: Any, **_: Any) -> float | list[float]:
    """Return the reward of a sample, or the rewards of a prompt's samples.

    Args:
        args: slime's arguments, ignored.
        sample: A `Sample`, or with `--group-rm` a list of samples.

    Raises:
        RewardExcluded: A sample has no reward, and no other reward of the sample's prompt can replace the missing
            reward.
        GradewireError: See `RewardScorer.ascore`.
    """
    del args
    samples = sample if isinstance(sample, list) else [sample]
    scorer = shared_group_reward(deadline_s=DEADLINE_S) or shared_scorer(deadline_s=DEADLINE_S)
    rewards = await scorer.ascore([_sample(one) for one in samples])
    for one, reward in zip(samples, rewards, strict=True):
        if isinstance(one.metadata, dict):
            one.metadata.update(reward.to_info())
    values = [reward.value for reward in rewards]
    scored = [value for value in values if value is not None]
    if not scored or (len(scored) < len(values) and not isinstance(sample, list)):
        failed = next(reward for reward in rewards if reward.value is None)
        raise RewardExcluded(
            f"a sample has no reward, and its prompt (--group-rm) has no other reward to use instead: {failed.reason}",
            Counter(reward.status for reward in rewards),
        )
    for one, value in zip(samples, values, strict=True):
        if value is None:
            # Newer versions of slime read `remove_sample`, older versions `loss_mask`.
            one.remove_sample = True
            one.loss_mask = [0] * one.response_length
    filled = [fmean(scored) if value is None else value for value in values]
    return filled if isinstance(sample, list) else filled[0]


def _sample(sample: Any) -> RewardSample:
    return RewardSample(sample.response, as_references(sample.label), question_in(sample.prompt))
