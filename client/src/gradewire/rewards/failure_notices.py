"""Warnings about rewards that all fail for the same reason, with the columns that were found and that are read."""

import logging
from collections.abc import Sequence
from typing import Final

from gradewire._columns import ALIASES
from gradewire._common_failures import FailureNotices
from gradewire.results import Status
from gradewire.rewards.reward import Reward, RewardSample

_log = logging.getLogger("gradewire.rewards")

_OTHER_NAMES: Final = ("answer", "answers", "solution", "label", "target")
SURE_REFERENCE_NAMES: Final = tuple(name for name in ALIASES["references"] if name not in _OTHER_NAMES)
"""Usual names that have precedence: a data set's `answer` or `solution` may be a derivation, or a model's answer."""
REFERENCE_NAMES: Final = (*SURE_REFERENCE_NAMES, *_OTHER_NAMES)
"""Usual names of the column with right answers."""
_LEAST_REWARDS: Final = 8
"""Minimum number of rewards to judge. Some frameworks score one completion at a time."""


class RewardNotices:
    """The warnings of one scorer: at the first batch that fails as a whole for a reason, then at the 10th and so on."""

    def __init__(self) -> None:
        # An empty answer is the policy model's fault, or the extraction's. No column helps.
        self._notices = FailureNotices(_log, least=_LEAST_REWARDS, of_fields={Status.INVALID_INPUT})

    def take(self, samples: Sequence[RewardSample], rewards: Sequence[Reward]) -> None:
        """Take a call's rewards, and warn if all of them failed for the same reason."""
        outcomes = {"the reward": [(reward.status, reward.reason) for reward in rewards]}
        self._notices.take("completions", outcomes, lambda: _fields(samples))


def _fields(samples: Sequence[RewardSample]) -> str:
    first = samples[0]
    given = {"completion": first.completion, "references": first.references, "question": first.question}
    without = ", ".join(name for name, value in given.items() if not value) or "nothing"
    columns = f" Its row has the columns {', '.join(first.columns)}." if first.columns else ""
    return (
        f"The first sample lacks {without}.{columns} The adapters read references from one of "
        f"{', '.join(REFERENCE_NAMES)}, unless you name a column"
    )
