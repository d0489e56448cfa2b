"""What becomes of a sample that has no score; never a 0 that nobody asked for."""

import math
import threading
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Literal, TypeAlias, get_args

from gradewire._calls.arguments import check_most
from gradewire.errors import InvalidRequest
from gradewire.results import Status
from gradewire.rewards.errors import RewardFailed, RewardFailureRate
from gradewire.rewards.reward import Reward

FailurePolicy: TypeAlias = Literal["exclude", "raise", "hold", "value"]
"""Of samples that could not be scored."""

# Of fewer rewards than this no rate is taken.
_LEAST_REWARDS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureHandling:
    """What becomes of samples without a score.

    An empty answer is the policy model's own doing: it is excluded, or gets `empty_value`, and does not count as a
    failure. All other statuses are failures.

    Attributes:
        policy: "exclude": the value is None. "raise": RewardFailed. "hold": what may pass (no server, no time) is tried
            again for `hold_s`, then RewardFailed; what cannot pass is excluded. "value": the value is `value`.
        value: Of the policy "value"; needed there, and nowhere else.
        empty_value: Value of a completion without an answer; None: it is excluded.
        hold_s: How long "hold" tries again, seconds.
        max_failure_rate: Share of failures among the last `window` rewards above which RewardFailureRate is raised,
            whatever the policy; 1: never.
        window: Number of rewards over which the rate is taken; of fewer than 32 none is.

    Raises:
        InvalidRequest: An argument is wrong; the message names it.
    """

    policy: FailurePolicy = "exclude"
    value: float | None = None
    empty_value: float | None = None
    hold_s: float = 600.0
    max_failure_rate: float = 0.5
    window: int = 512

    def __post_init__(self) -> None:
        if self.policy not in get_args(FailurePolicy):
            raise InvalidRequest(f"policy={self.policy!r}: give one of {', '.join(get_args(FailurePolicy))}")
        if (self.value is None) == (self.policy == "value"):
            raise InvalidRequest(f"value={self.value!r}: give a number with policy='value', and with no other policy")
        for name in ("value", "empty_value", "hold_s", "max_failure_rate"):
            given = getattr(self, name)
            if given is not None and not _is_finite(given):
                raise InvalidRequest(f"{name}={given!r}: give a finite number")
        if not 0 < self.max_failure_rate <= 1:
            raise InvalidRequest(f"max_failure_rate={self.max_failure_rate!r}: give a share above 0, 1 to never stop")
        if self.hold_s <= 0:
            raise InvalidRequest(f"hold_s={self.hold_s!r}: give seconds, more than 0")
        check_most("window", self.window)
        if self.window < _LEAST_REWARDS:
            raise InvalidRequest(f"window={self.window}: give {_LEAST_REWARDS} or more")

    def settle(self, rewards: Sequence[Reward]) -> list[Reward]:
        """The rewards with the values that the policy gives.

        Raises:
            RewardFailed: The policy does not go on.
        """
        failed = [reward for reward in rewards if is_failure(reward)]
        fatal = failed if self.policy == "raise" else [reward for reward in failed if reward.status.may_pass]
        if fatal and self.policy in {"raise", "hold"}:
            counts = Counter(reward.status for reward in rewards)
            raise RewardFailed(f"{_shares(counts)}; the first: {fatal[0].reason}", counts)
        return [self._settled(reward) for reward in rewards]

    def _settled(self, reward: Reward) -> Reward:
        if reward.scored:
            return reward
        return replace(reward, value=self.value if is_failure(reward) else self.empty_value)


def _is_finite(value: object) -> bool:
    return isinstance(value, Real) and math.isfinite(value)


def is_failure(reward: Reward) -> bool:
    """Whether scoring failed; an empty answer is none."""
    return reward.status not in {Status.OK, Status.EMPTY_PREDICTION}


class FailureWindow:
    """Counts the last rewards of this process; threads may share it."""

    def __init__(self, handling: FailureHandling) -> None:
        self._max_rate = handling.max_failure_rate
        self._window = handling.window
        self._last: deque[Status] = deque()
        self._counts: Counter[Status] = Counter()
        self._lock = threading.Lock()

    def check(self, rewards: Iterable[Reward]) -> None:
        """Adds rewards.

        Raises:
            RewardFailureRate: Too many of the last ones failed.
        """
        with self._lock:
            for reward in rewards:
                self._last.append(reward.status)
                self._counts[reward.status] += 1
                if len(self._last) > self._window:
                    self._counts[self._last.popleft()] -= 1
            total = len(self._last)
            failures = total - self._counts[Status.OK] - self._counts[Status.EMPTY_PREDICTION]
            if total < _LEAST_REWARDS or self._max_rate == 1 or failures <= self._max_rate * total:
                return
            counts = +self._counts
        raise RewardFailureRate(
            f"{failures} of the last {total} rewards failed ({_shares(counts)}), more than "
            f"max_failure_rate={self._max_rate:g}: look at the server before training goes on",
            counts,
        )


def _shares(counts: "Counter[Status]") -> str:
    return ", ".join(f"{count} {status}" for status, count in counts.most_common())
