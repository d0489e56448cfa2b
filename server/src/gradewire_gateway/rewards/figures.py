"""Figures of rewards; the name is stable and stands in docs/operate/prometheus.md."""

from collections import Counter
from collections.abc import Sequence

import prometheus_client

from gradewire.rewards import Reward


class RewardFigures:
    """Counts rewards: a sample that a framework masks has a reply of 200, so that statuses of HTTP do not tell it.

    Args:
        registry: Where they are shown.
    """

    def __init__(self, registry: prometheus_client.CollectorRegistry) -> None:
        self._rewards = prometheus_client.Counter(
            "gradewire_gateway_rewards",
            "Samples of reward posts, by route and status of the result (OK: it has a score).",
            ("route", "status"),
            registry=registry,
        )

    def count(self, route: str, rewards: Sequence[Reward]) -> None:
        """Counts the rewards of a post."""
        for status, count in Counter(reward.status for reward in rewards).items():
            self._rewards.labels(route, str(status)).inc(count)
