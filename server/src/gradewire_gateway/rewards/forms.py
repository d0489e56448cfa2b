"""What each framework posts and is answered, by path; the forms themselves are those of `gradewire.rewards.posts`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from gradewire.rewards import Reward, RewardSample
from gradewire.rewards.posts import nemo_gym, openrlhf, slime
from gradewire.rewards.posts.reply import PostReply, no_reward
from gradewire_gateway.rewards.paths import AGGREGATE_PATH, OPENRLHF_PATH, SEED_PATH, SLIME_PATH, VERIFY_PATH
from gradewire_gateway.settings import RewardPostSettings

Body: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RewardForm:
    """One framework's posts.

    Attributes:
        read: The samples of a post; raises InvalidRequest, which names the field.
        write: The reply to a post, from its rewards.
    """

    read: Callable[[Body], Sequence[RewardSample]]
    write: Callable[[Body, Sequence[Reward]], PostReply]


def reward_forms(settings: RewardPostSettings) -> dict[str, RewardForm]:
    """Those that need rewards."""
    key = settings.slime_key or None
    return {
        OPENRLHF_PATH: RewardForm(
            openrlhf.samples_of, lambda _, rewards: no_reward(rewards) or PostReply(openrlhf.reply_of(rewards))
        ),
        SLIME_PATH: RewardForm(
            lambda body: [slime.sample_of(body)],
            lambda _, rewards: no_reward(rewards) or PostReply(slime.reply_of(rewards[0], key)),
        ),
        VERIFY_PATH: RewardForm(
            lambda body: [nemo_gym.sample_of(body)],
            lambda body, rewards: PostReply(nemo_gym.reply_of(body, rewards[0])),
        ),
    }


PLAIN_FORMS: Final[Mapping[str, Callable[[Body], PostReply]]] = {
    SEED_PATH: nemo_gym.seed_session,
    AGGREGATE_PATH: nemo_gym.aggregate_metrics,
}
"""Those that are answered without a server."""
