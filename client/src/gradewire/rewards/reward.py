"""A sample, its reward, and the handling of a sample without a score, which is never a 0 that nobody asked for."""

import math
import threading
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Literal, TypeAlias, get_args

from gradewire.errors import GradewireError, InvalidRequest
from gradewire.options import check_most
from gradewire.results import Status
from gradewire.rewards.answer import Completion


class RewardError(GradewireError):
    """No reward can be given, and the policy for failures says not to go on.

    Attributes:
        counts: Number of rewards by status: of the call, or of the window that the failure rate is taken over.
    """

    def __init__(self, message: str, counts: Mapping[Status, int]) -> None:
        # Both, so that it survives being pickled by a framework on its way from a worker.
        super().__init__(message, dict(counts))
        self.counts = dict(counts)

    def __str__(self) -> str:
        return str(self.args[0])


class RewardFailed(RewardError):  # noqa: N818 - reads as what happened, like the client's errors
    """Scoring failed, and the policy is "raise", or "hold" and the time to hold is over."""


class RewardExcluded(RewardError):  # noqa: N818 - as above
    """A sample has no reward, and the framework takes an exception for leaving it out."""


class RewardFailureRate(RewardError):  # noqa: N818 - as above
    """Too many of the last rewards failed: the run had better stop."""


@dataclass(frozen=True, slots=True)
class RewardSample:
    """A completion to be rewarded.

    Attributes:
        completion: What the policy model wrote: a text, or messages of a chat.
        references: Right answers, one or more.
        question: What was asked; read by metrics that read it.
        id: Handed to the server, for its log.
    """

    completion: Completion
    references: Sequence[str]
    question: str = ""
    id: str = ""


@dataclass(frozen=True, slots=True)
class Reward:
    """The reward of one sample.

    Attributes:
        value: The metric's score, untouched; what the policy for failures says where there is none; None: the sample is
            to be left out.
        status: OK, or why there is no score.
        reason: What went wrong and what to do; empty when OK.
        answer: What was graded of the completion.
        line: The metric line that gives the same score again; empty where no server computed one.
        digest: 64 hex digits of the model behind the score; empty for metrics without one, or without a score.
    """

    value: float | None
    status: Status
    reason: str = ""
    answer: str = ""
    line: str = ""
    digest: str = ""

    @property
    def scored(self) -> bool:
        """True if `value` is a score of the metric."""
        return self.status is Status.OK

    def to_info(self) -> dict[str, str]:
        """For the extra info of a framework: the same keys for every reward, all texts."""
        return {
            "gradewire_status": str(self.status),
            "gradewire_reason": self.reason,
            "gradewire_answer": self.answer,
            "gradewire_line": self.line,
            "gradewire_digest": self.digest,
        }


def as_references(value: Any) -> tuple[str, ...]:
    """Right answers as texts, from what data sets hold: a text, a number, a list of these, or a mapping with them.

    Of a mapping the value under `target`, `answer`, `ground_truth` or `value` is read. None and empty lists give no
    reference, which the client answers with INVALID_INPUT.
    """
    if isinstance(value, dict):
        names = ("target", "answer", "ground_truth", "value")
        return as_references(next((value[name] for name in names if name in value), None))
    if value is None:
        return ()
    if hasattr(value, "tolist"):  # an array or a scalar of NumPy or torch
        return as_references(value.tolist())
    if isinstance(value, list | tuple):
        return tuple(reference for entry in value for reference in as_references(entry))
    return (str(value),)


FailurePolicy: TypeAlias = Literal["exclude", "raise", "hold", "value"]
"""The policy for samples that could not be scored."""

# Of fewer rewards than this no rate is taken.
_LEAST_REWARDS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureHandling:
    """The handling of samples without a score.

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
        """Return the rewards with the values that the policy gives.

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
    """Return True if scoring failed; an empty answer is none."""
    return reward.status not in {Status.OK, Status.EMPTY_PREDICTION}


class FailureWindow:
    """The statuses of the last rewards of this process; threads may share it."""

    def __init__(self, handling: FailureHandling) -> None:
        self._max_rate = handling.max_failure_rate
        self._window = handling.window
        self._last: deque[Status] = deque()
        self._counts: Counter[Status] = Counter()
        self._lock = threading.Lock()

    def check(self, rewards: Iterable[Reward]) -> None:
        """Add rewards.

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
