"""A metric for ragas.

```python
from gradewire.integrations.evaluation.ragas import GradewireMetric

metric = GradewireMetric()
result = metric.score(user_input="What sleeps?", response="A small cat.", reference="cat")
print(result.value, result.reason)
```
"""

from collections.abc import Mapping, Sequence
from math import nan
from typing import Any

from gradewire.errors import needed_by
from gradewire.integrations.evaluation.evaluator import METRIC, AnswerEvaluator, Evaluation

with needed_by("gradewire.integrations.evaluation.ragas"):
    from ragas.metrics.base import SimpleBaseMetric
    from ragas.metrics.result import MetricResult

# A range that covers all metrics: the lowest score is -1 (sbert), the highest is 10 (cider).
_RANGE = (-1.0, 10.0)


class GradewireMetric(SimpleBaseMetric):
    """A metric that grades `response`. After a failure, the value is NaN, as is usual in ragas, and never 0.

    `reason` explains a score or a failure. `traces["output"]` contains the status, metric identifier, digest and parts
    of the score.

    Args:
        metric: One metric; see `Client.score`.
        name: The metric's name in ragas.
        **connection: `address`, `token`, `deadline_s` and `extraction`; see `AnswerEvaluator`.
    """

    def __init__(self, metric: str = METRIC, name: str = "gradewire", **connection: Any) -> None:
        super().__init__(name=name, allowed_values=_RANGE)
        self._evaluator = AnswerEvaluator(metric, **connection)

    def score(self, *, response: str, reference: str | Sequence[str], user_input: str = "") -> MetricResult:
        """Grade one response against the reference, or against the best of several references."""
        return self.batch_score([{"response": response, "reference": reference, "user_input": user_input}])[0]

    async def ascore(self, *, response: str, reference: str | Sequence[str], user_input: str = "") -> MetricResult:
        """Grade one response asynchronously; see `score`."""
        asked = {"response": response, "reference": reference, "user_input": user_input}
        return (await self.abatch_score([asked]))[0]

    def batch_score(self, inputs: Sequence[Mapping[str, Any]]) -> list[MetricResult]:
        """Grade many responses in one call."""
        return [_result(evaluation) for evaluation in self._evaluator.evaluate_all(_items(inputs))]

    async def abatch_score(self, inputs: Sequence[Mapping[str, Any]]) -> list[MetricResult]:
        """Grade many responses asynchronously; see `batch_score`."""
        return [_result(evaluation) for evaluation in await self._evaluator.evaluate_all_async(_items(inputs))]


def _items(inputs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [
        {
            "question": asked.get("user_input") or "",
            "references": asked.get("reference"),
            "prediction": asked.get("response"),
        }
        for asked in inputs
    ]


def _result(evaluation: Evaluation) -> MetricResult:
    value = nan if evaluation.value is None else evaluation.value
    return MetricResult(value=value, reason=evaluation.explanation, traces={"output": evaluation.to_dict()})
