"""Samples, rewards, and policies for samples without a score. A missing score never silently becomes a 0."""

import math
import threading
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any, Literal, TypeAlias, get_args

from gradewire._rows import is_missing
from gradewire.errors import GradewireError, InvalidRequest
from gradewire.options import check_most
from gradewire.results import Status
from gradewire.rewards.answer import Completion


class RewardError(GradewireError):
    """A reward is missing, and the failure policy stops the call.

    Attributes:
        counts: Number of rewards by status, in this call or in the failure rate's window.
    """

    def __init__(self, message: str, counts: Mapping[Status, int]) -> None:
        # Pass both arguments to the base class, so that a framework's worker can pickle the error.
        super().__init__(message, dict(counts))
        self.counts = dict(counts)

    def __str__(self) -> str:
        return str(self.args[0])


class RewardFailed(RewardError):  # noqa: N818 - named after the event
    """Scoring failed. The policy is "raise", or the policy is "hold" and `hold_s` has passed."""


class RewardExcluded(RewardError):  # noqa: N818 - as above
    """A sample has no reward. The framework leaves a sample out only if the reward function raises an exception."""


class RewardFailureRate(RewardError):  # noqa: N818 - as above
    """Too many of the last rewards failed, so the training run should stop."""


@dataclass(frozen=True, slots=True)
class RewardSample:
    """A completion to reward.

    Attributes:
        completion: The policy model's output: a string, or the messages of a chat. None (the framework has no output)
            is a failure with the status INVALID_INPUT, not an empty answer.
        references: One or more right answers.
        question: The question, for metrics that read questions.
        id: An id for the server's log.
        columns: Names of the columns of the sample's row, for warnings.
    """

    completion: Completion | None
    references: Sequence[str]
    question: str = ""
    id: str = ""
    columns: Sequence[str] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Reward:
    """The reward of one sample.

    Attributes:
        value: The metric's unchanged score (or its verdict, 1.0 or 0.0), unless `reason` says otherwise. None means
            that the sample must be left out.
        status: OK, or the reason for a missing score.
        reason: The error and its remedy, or the reason why `value` is not the metric's score (an answer that is too
            long, or an UNCERTAIN one); otherwise empty.
        answer: The answer that was extracted from the completion and graded.
        line: The metric identifier that reproduces the score; empty if no server returned it.
        digest: Digest (64 hex digits) of the model behind the score; empty without a model or a score.
        uncertain: True if the metric's result has the warning UNCERTAIN.
    """

    value: float | None
    status: Status
    reason: str = ""
    answer: str = ""
    line: str = ""
    digest: str = ""
    uncertain: bool = False

    @property
    def scored(self) -> bool:
        """True if scoring succeeded, even if the sample is left out because it is UNCERTAIN."""
        return self.status is Status.OK

    def to_info(self) -> dict[str, str]:
        """Return strings for a framework's extra info. Every reward has the same keys."""
        return {
            "gradewire_status": str(self.status),
            "gradewire_reason": self.reason,
            "gradewire_answer": self.answer,
            "gradewire_line": self.line,
            "gradewire_digest": self.digest,
            "gradewire_uncertain": str(self.uncertain).lower(),
        }


def as_references(value: Any) -> tuple[str, ...]:
    """Return a sample's right answers as strings.

    The value may be a string, a number, a list of strings or numbers, or a mapping with such a value under `target`,
    `answer`, `ground_truth` or `value`. For None, NaN, True, False and empty lists, the result is empty, and the sample
    gets the status INVALID_INPUT.
    """
    if isinstance(value, dict):
        names = ("target", "answer", "ground_truth", "value")
        return as_references(next((value[name] for name in names if name in value), None))
    if is_missing(value) or isinstance(value, bool):
        return ()
    if hasattr(value, "tolist"):  # an array or a scalar of NumPy or torch
        return as_references(value.tolist())
    if isinstance(value, list | tuple):
        return tuple(reference for entry in value for reference in as_references(entry))
    return (str(value),)


def completion_problem(completion: object) -> str:
    """Return the reason why a completion is no model output; "" if it is one."""
    if completion is None:
        return "the completion is None: the framework passed no output, so generation may have failed"
    if isinstance(completion, str):
        return ""
    if isinstance(completion, Sequence) and all(isinstance(message, Mapping) for message in completion):
        if not completion:
            return "the completion is a chat without messages: the framework passed no output"
        last = completion[-1]
        if "content" in last and last["content"] is None and not last.get("tool_calls"):
            return "the last message's content is None: the framework passed no output, so generation may have failed"
        return ""
    return f"the completion is a {type(completion).__name__}: pass a string, or a list of messages"


FailurePolicy: TypeAlias = Literal["exclude", "raise", "hold", "value"]
"""A policy for samples that could not be scored."""

UncertainPolicy: TypeAlias = Literal["exclude", "value", "judge"]
"""A policy for samples whose score has the warning UNCERTAIN."""

# Minimum number of rewards from which a failure rate is computed.
_LEAST_REWARDS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureHandling:
    """Settings for samples without a score, and for samples with an UNCERTAIN one.

    An empty answer is the policy model's fault and not a failure: the sample is excluded or gets `empty_value`. Every
    other status except OK is a failure. `correctness` warns with UNCERTAIN if its verdict cannot be trusted, for
    example about a denial that contains the right words.

    Attributes:
        policy: "exclude" sets the reward to None. "raise" raises RewardFailed. "hold" retries UNAVAILABLE and TIMEOUT
            for up to `hold_s`, then raises RewardFailed, and excludes samples with other failures. "value" sets the
            reward to `value`.
        value: Reward for the policy "value"; must be None with other policies.
        empty_value: Reward of a completion without an answer; None excludes the sample.
        hold_s: Seconds for which "hold" retries.
        max_failure_rate: Maximum share of failures among the last `window` rewards. Above this share, every policy
            raises RewardFailureRate. With 1, no policy raises it.
        window: Number of rewards from which the failure rate is computed, at least 32.
        uncertain: "value" limits the reward of an UNCERTAIN sample to `uncertain_value`. "exclude" sets it to None.
            "judge" uses the score of `judge_metric`, for which the server needs a judge.
        uncertain_value: Maximum reward of an UNCERTAIN sample with the policy "value".
        judge_metric: Metric of a judge for the policy "judge".

    Raises:
        InvalidRequest: An argument is wrong.
    """

    policy: FailurePolicy = "exclude"
    value: float | None = None
    empty_value: float | None = None
    hold_s: float = 600.0
    max_failure_rate: float = 0.5
    window: int = 512
    uncertain: UncertainPolicy = "value"
    uncertain_value: float = 0.5
    judge_metric: str = "judge_verdict"

    def __post_init__(self) -> None:
        if self.policy not in get_args(FailurePolicy):
            raise InvalidRequest(f"policy={self.policy!r}: give one of {', '.join(get_args(FailurePolicy))}")
        if (self.value is None) == (self.policy == "value"):
            raise InvalidRequest(
                f"value={self.value!r}: policy='value' needs a number; leave it out with other policies"
            )
        if self.uncertain not in get_args(UncertainPolicy):
            raise InvalidRequest(f"uncertain={self.uncertain!r}: give one of {', '.join(get_args(UncertainPolicy))}")
        if self.uncertain_value is None:
            raise InvalidRequest("uncertain_value=None: give a finite number, or uncertain='exclude'")
        for name in ("value", "empty_value", "hold_s", "max_failure_rate", "uncertain_value"):
            given = getattr(self, name)
            if given is not None and not _is_finite(given):
                raise InvalidRequest(f"{name}={given!r}: give a finite number")
        if not 0 < self.max_failure_rate <= 1:
            raise InvalidRequest(f"max_failure_rate={self.max_failure_rate!r}: give a share above 0 and up to 1")
        if self.hold_s <= 0:
            raise InvalidRequest(f"hold_s={self.hold_s!r}: give a number of seconds above 0")
        check_most("window", self.window)
        if self.window < _LEAST_REWARDS:
            raise InvalidRequest(f"window={self.window}: give {_LEAST_REWARDS} or more")

    def settle(self, rewards: Sequence[Reward]) -> list[Reward]:
        """Return the rewards with the policies' values for samples without a score and for UNCERTAIN ones.

        Raises:
            RewardFailed: The policy stops the call because of a failure.
        """
        failed = [reward for reward in rewards if is_failure(reward)]
        fatal = failed if self.policy == "raise" else [reward for reward in failed if reward.status.may_pass]
        if fatal and self.policy in {"raise", "hold"}:
            counts = Counter(reward.status for reward in rewards)
            raise RewardFailed(f"scoring failed ({_shares(counts)}): {fatal[0].reason}", counts)
        return [self._settled(reward) for reward in rewards]

    def _settled(self, reward: Reward) -> Reward:
        if not reward.scored:
            return replace(reward, value=self.value if is_failure(reward) else self.empty_value)
        if not reward.uncertain or self.uncertain == "judge" or reward.value is None:
            return reward
        if self.uncertain == "exclude":
            return replace(reward, value=None, reason=f"UNCERTAIN (score {reward.value:.3g}): left out")
        if reward.value <= self.uncertain_value:
            return reward
        limited = f"UNCERTAIN (score {reward.value:.3g}): limited to uncertain_value={self.uncertain_value:g}"
        return replace(reward, value=self.uncertain_value, reason=limited)


def _is_finite(value: object) -> bool:
    return isinstance(value, Real) and math.isfinite(value)


def is_failure(reward: Reward) -> bool:
    """Return True if scoring failed; an empty answer is not a failure."""
    return reward.status not in {Status.OK, Status.EMPTY_PREDICTION}


class FailureWindow:
    """The statuses of a scorer's last rewards, which determine the failure rate. Several threads may use a window."""

    def __init__(self, handling: FailureHandling) -> None:
        self._max_rate = handling.max_failure_rate
        self._window = handling.window
        self._last: deque[Status] = deque()
        self._counts: Counter[Status] = Counter()
        self._lock = threading.Lock()

    def check(self, rewards: Iterable[Reward]) -> None:
        """Add rewards and check the failure rate.

        Raises:
            RewardFailureRate: Too many of the last rewards failed.
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
            f"max_failure_rate={self._max_rate:g}: check the server before you continue training",
            counts,
        )


def _shares(counts: "Counter[Status]") -> str:
    return ", ".join(f"{count} {status}" for status, count in counts.most_common())
