r"""Rewards for reinforcement learning: scores of completions. A failure never silently becomes a reward of 0.

```python
from gradewire.rewards import RewardSample, RewardScorer

with RewardScorer("127.0.0.1:50051", "smile") as scorer:
    reward = scorer.score_one(RewardSample(r"… so it is \\boxed{a cat}.", ["a cat"]))
    print(reward.value, reward.status, reward.line)
```

`import gradewire` does not import this package, and this package imports no framework. Each framework has a module:
`gradewire.rewards.trl`, `.verl`, `.areal`, `.slime`, `.verifiers`, and `.posts` for reward servers.
"""

from gradewire.rewards.answer import Answer, Completion, Extraction, Extractor, extract_answer
from gradewire.rewards.framework_settings import shared_scorer
from gradewire.rewards.gathering import Gathering
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

__all__ = [
    "Answer",
    "Completion",
    "Extraction",
    "Extractor",
    "FailureHandling",
    "FailurePolicy",
    "Gathering",
    "Reward",
    "RewardError",
    "RewardExcluded",
    "RewardFailed",
    "RewardFailureRate",
    "RewardSample",
    "RewardScorer",
    "as_references",
    "extract_answer",
    "shared_scorer",
]
