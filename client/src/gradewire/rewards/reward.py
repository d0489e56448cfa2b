"""What goes in and comes out: a sample, and its reward."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gradewire.results import Status
from gradewire.rewards.answer import Completion


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
        """Whether `value` is a score of the metric."""
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
