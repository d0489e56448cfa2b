"""Reward functions for TRL's GRPOTrainer and RLOOTrainer (1.16).

```python
from gradewire.rewards import RewardScorer
from gradewire.rewards.trl import TrlReward

trainer = GRPOTrainer(model, reward_funcs=TrlReward(RewardScorer("127.0.0.1:50051")), …)
```

`GroupReward` takes the place of `RewardScorer` to compare the completions of a prompt with each other.

TRL treats a reward of None as NaN. The sample then does not count in its group's mean and gets an advantage of 0.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gradewire.errors import InvalidRequest
from gradewire.rewards.answer import Completion
from gradewire.rewards.framework_settings import question_in, reference_name
from gradewire.rewards.group import GroupReward
from gradewire.rewards.reward import Reward, RewardSample, as_references, is_failure
from gradewire.rewards.scorer import RewardScorer

LogExtra = Callable[[str, list[Any]], None]
LogMetric = Callable[[str, float], None]


class _Columns:
    """The base class of both reward functions.

    Args:
        scorer: The scorer that computes the rewards: a `RewardScorer` or a `GroupReward`.
        references: Column of the right answers; None means the scorer's `reference_column`, or the column with a usual
            name.
        question: Column of the questions; None means the prompt, or the user's last message in a chat.
        name: Name of the reward in TRL's log.
    """

    def __init__(
        self,
        scorer: RewardScorer | GroupReward,
        *,
        references: str | None = None,
        question: str | None = None,
        name: str = "gradewire",
    ) -> None:
        self._scorer = scorer
        self._references = references
        self._question = question
        self.__name__ = name

    def _samples(
        self, prompts: Sequence[Completion], completions: Sequence[Completion], columns: Mapping[str, Sequence[Any]]
    ) -> list[RewardSample]:
        chosen = self._references or self._scorer.reference_column
        references: Sequence[Any] = [()] * len(completions)
        if chosen or self._scorer.needs_references:
            references = columns[reference_name(columns, chosen)]
        if self._question is not None and self._question not in columns:
            there = ", ".join(columns)
            raise InvalidRequest(f"question: there is no column {self._question}; the columns are: {there}")
        questions = [question_in(prompt) for prompt in prompts] if self._question is None else columns[self._question]
        if not len(completions) == len(references) == len(questions):
            raise InvalidRequest(
                f"{len(completions)} completions, {len(references)} references and {len(questions)} questions: pass "
                "one of each for a sample"
            )
        return [
            RewardSample(completion, as_references(right), str(question), columns=tuple(columns))
            for completion, right, question in zip(completions, references, questions, strict=True)
        ]

    def _values(
        self, rewards: Sequence[Reward], log_extra: LogExtra | None, log_metric: LogMetric | None
    ) -> list[float | None]:
        if log_extra is not None:
            for key in ("status", "reason", "answer", "line", "digest", "uncertain"):
                log_extra(f"{self.__name__}_{key}", [str(getattr(reward, key)) for reward in rewards])
        if log_metric is not None and rewards:
            failed = sum(map(is_failure, rewards))
            empty = sum(not reward.scored for reward in rewards) - failed
            log_metric(f"{self.__name__}/failed", failed / len(rewards))
            log_metric(f"{self.__name__}/empty", empty / len(rewards))
            log_metric(f"{self.__name__}/uncertain", sum(reward.uncertain for reward in rewards) / len(rewards))
        return [reward.value for reward in rewards]


class TrlReward(_Columns):
    """A blocking reward function for TRL."""

    def __call__(  # noqa: D102 - TRL defines the arguments
        self,
        *,
        prompts: Sequence[Completion],
        completions: Sequence[Completion],
        log_extra: LogExtra | None = None,
        log_metric: LogMetric | None = None,
        **columns: Any,
    ) -> list[float | None]:
        return self._values(self._scorer.score(self._samples(prompts, completions, columns)), log_extra, log_metric)


class AsyncTrlReward(_Columns):
    """An asynchronous reward function for TRL. TRL can run several such functions at once on its event loop."""

    async def __call__(  # noqa: D102 - TRL defines the arguments
        self,
        *,
        prompts: Sequence[Completion],
        completions: Sequence[Completion],
        log_extra: LogExtra | None = None,
        log_metric: LogMetric | None = None,
        **columns: Any,
    ) -> list[float | None]:
        rewards = await self._scorer.ascore(self._samples(prompts, completions, columns))
        return self._values(rewards, log_extra, log_metric)
