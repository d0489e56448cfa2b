"""slime's reward server: POST of prompt, response and label (`--rm-type remote_rm --rm-url`); the reply is the reward.

slime asks ten times, then its run stops. In slime's own process `gradewire.rewards.slime` does more.
"""

from typing import Any

from gradewire.errors import GradewireError
from gradewire.rewards.answer import without_end
from gradewire.rewards.posts.reply import PostReply, failed, fields_of, no_reward, question_of, text_of
from gradewire.rewards.reward import Reward, RewardSample, as_references
from gradewire.rewards.scorer import RewardScorer

# Below the 120 s after which slime gives a post up.
DEADLINE_S = 90.0


async def answer(scorer: RewardScorer, body: Any, reward_key: str | None = None) -> PostReply:
    """Answers one post with a number; with a `reward_key` (slime's --reward-key) with a mapping that has it.

    Args:
        scorer: Gives the reward.
        body: The post's JSON.
        reward_key: Under which the number stands, beside status, answer, line and digest.
    """
    try:
        reward = await scorer.ascore_one(sample_of(body))
    except GradewireError as error:
        return failed(error)
    if (problem := no_reward([reward])) is not None:
        return problem
    return PostReply(reply_of(reward, reward_key))


def sample_of(body: Any) -> RewardSample:
    """The sample of a post.

    Raises:
        InvalidRequest: A field is missing, or the response is no text.
    """
    fields = fields_of(body, "prompt", "response", "label")
    return RewardSample(
        without_end(text_of(fields["response"], "response")),
        as_references(fields["label"]),
        question_of(fields["prompt"], "prompt"),
    )


def reply_of(reward: Reward, reward_key: str | None = None) -> Any:
    """The reply that slime reads: the number, or a mapping that has it under the key."""
    return reward.value if reward_key is None else {reward_key: reward.value, **reward.to_info()}
