"""OpenRLHF's reward server: POST of query, prompts and labels (`--reward.remote_url`, 0.11)."""

from collections.abc import Mapping, Sequence
from typing import Any

from gradewire.errors import GradewireError, InvalidRequest
from gradewire.rewards.answer import completion_in
from gradewire.rewards.posts.reply import PostReply, failed, fields_of, no_reward, text_of
from gradewire.rewards.reward import Reward, RewardSample, as_references
from gradewire.rewards.scorer import RewardScorer

# Below the 180 s after which OpenRLHF gives a post up.
DEADLINE_S = 120.0


async def answer(scorer: RewardScorer, body: Any) -> PostReply:
    """Answers one post; its samples are gathered with those of others."""
    try:
        rewards = await scorer.ascore(samples_of(body))
    except GradewireError as error:
        return failed(error)
    return no_reward(rewards) or PostReply(reply_of(rewards))


def samples_of(body: Any) -> list[RewardSample]:
    """The samples of a post: each query holds the prompt and what the model answered.

    Raises:
        InvalidRequest: A field is missing or of another length, or a query does not hold its prompt.
    """
    fields = fields_of(body, "query", "prompts", "labels")
    queries, prompts, labels = (_list(fields, name) for name in ("query", "prompts", "labels"))
    if not len(queries) == len(prompts) == len(labels):
        raise InvalidRequest(f"query, prompts and labels have {len(queries)}, {len(prompts)} and {len(labels)} entries")
    samples = []
    for index, (posted, prompted, label) in enumerate(zip(queries, prompts, labels, strict=True)):
        query, prompt = text_of(posted, f"query[{index}]"), text_of(prompted, f"prompts[{index}]")
        completion = completion_in(query, prompt)
        if completion is None:
            raise InvalidRequest(f"query[{index}] does not hold prompts[{index}], so its completion cannot be told")
        samples.append(RewardSample(completion, as_references(label), prompt))
    return samples


def reply_of(rewards: Sequence[Reward]) -> dict[str, Any]:
    """OpenRLHF's reply: numbers alone reach its logs, all else is beside them."""
    values = [reward.value for reward in rewards]
    return {
        "rewards": values,
        "scores": values,
        "extra_logs": {"gradewire_scored": [float(reward.scored) for reward in rewards]},
        "gradewire": [reward.to_info() for reward in rewards],
    }


def _list(fields: Mapping[str, Any], name: str) -> list[Any]:
    value = fields[name]
    if not isinstance(value, list):
        raise InvalidRequest(f"{name} is a {type(value).__name__}: post a list")
    return value
