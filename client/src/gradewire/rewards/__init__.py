r"""Rewards for reinforcement learning: scores of completions. A failure never silently becomes a reward of 0.

```python
from gradewire.rewards import RewardSample, RewardScorer

with RewardScorer("127.0.0.1:50051", "correctness") as scorer:
    reward = scorer.score_one(RewardSample(r"… so it is \\boxed{a cat}.", ["a cat"]))
    print(reward.value, reward.status, reward.line)
```

`import gradewire` does not import this package, and this package imports no framework. Each framework has a module:
`gradewire.rewards.trl`, `.verl`, `.areal`, `.slime`, `.verifiers`, and `.posts` for reward servers.
"""

from typing import TYPE_CHECKING, Any

from gradewire.rewards.answer import Answer, Completion, Extraction, Extractor, extract_answer
from gradewire.rewards.framework_settings import shared_scorer
from gradewire.rewards.gathering import Gathering
from gradewire.rewards.group import GroupReward
from gradewire.rewards.reward import (
    FailureHandling,
    FailurePolicy,
    Reward,
    RewardError,
    RewardExcluded,
    RewardFailed,
    RewardFailureRate,
    RewardSample,
    as_references,
)
from gradewire.rewards.scorer import RewardScorer
from gradewire_proto import final_answer
from gradewire_proto.final_answer import FinalAnswer

if TYPE_CHECKING:
    from gradewire_proto.final_answer import find_final_answer

__all__ = [
    "Answer",
    "Completion",
    "Extraction",
    "Extractor",
    "FailureHandling",
    "FailurePolicy",
    "FinalAnswer",
    "Gathering",
    "GroupReward",
    "Reward",
    "RewardError",
    "RewardExcluded",
    "RewardFailed",
    "RewardFailureRate",
    "RewardSample",
    "RewardScorer",
    "as_references",
    "extract_answer",
    "find_final_answer",
    "shared_scorer",
]


def __getattr__(name: str) -> Any:
    """Return the search for final answers, imported when it is first used because its import is slow."""
    if name == "find_final_answer":
        return final_answer.find_final_answer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
