"""A sample metric for lighteval.

```python
from lighteval.tasks.lighteval_task import LightevalTaskConfig
from gradewire.integrations.evaluation.lighteval import gradewire_metric

TASKS_TABLE = [LightevalTaskConfig(name="pets", …, metrics=[gradewire_metric()])]
```
"""

from collections.abc import Sequence
from itertools import islice
from math import isnan, nan
from typing import Any

from gradewire.errors import needed_by
from gradewire.integrations.evaluation.evaluator import METRIC, AnswerEvaluator
from gradewire.rewards.answer import Extraction

with needed_by("gradewire.integrations.evaluation.lighteval"):
    from lighteval.metrics.metrics_sample import SampleLevelComputation
    from lighteval.metrics.utils.metric_utils import SampleLevelMetric
    from lighteval.models.model_output import ModelResponse
    from lighteval.tasks.requests import Doc, SamplingMethod


def gradewire_metric(
    metric: str = METRIC,
    name: str = "gradewire",
    address: str | None = None,
    deadline_s: float | None = None,
    extraction: Extraction | None = None,
) -> SampleLevelMetric:
    """Return a metric that grades all of a task's answers in one call. Averages ignore unscored samples (NaN).

    Args:
        metric: One metric; see `Client.score`.
        name: The metric's name in lighteval.
        address: See `AnswerEvaluator`.
        deadline_s: Deadline for all of a task's answers; see `AnswerEvaluator`.
        extraction: See `AnswerEvaluator`.
    """
    return SampleLevelMetric(
        metric_name=name,
        higher_is_better=True,
        category=SamplingMethod.GENERATIVE,
        sample_level_fn=GradewireComputation(
            AnswerEvaluator(metric, address, deadline_s=deadline_s, extraction=extraction)
        ),
        corpus_level_fn=mean_of_scored,
        batched_compute=True,
    )


class GradewireComputation(SampleLevelComputation):
    """A computation that grades answers against their document's golds (reference answers).

    The question is the document's `specific["question"]` or, if that is missing, the query, which may contain
    instructions.
    """

    def __init__(self, evaluator: AnswerEvaluator) -> None:
        self._evaluator = evaluator

    def compute(self, docs: Sequence[Doc], responses: Sequence[ModelResponse], **_: Any) -> list[float]:
        """Return each document's mean score over the model's answers, or NaN if no answer was scored."""
        items = [
            {"question": _question(doc), "references": doc.get_golds(), "prediction": answer}
            for doc, response in zip(docs, responses, strict=True)
            for answer in response.final_text
        ]
        values = iter(
            nan if evaluation.value is None else evaluation.value for evaluation in self._evaluator.evaluate_all(items)
        )
        return [mean_of_scored(list(islice(values, len(response.final_text)))) for response in responses]


def mean_of_scored(values: Sequence[float]) -> float:
    """Return the mean, ignoring NaN values. If all values are NaN, return NaN."""
    scored = [value for value in values if not isnan(value)]
    return sum(scored) / len(scored) if scored else nan


def _question(doc: Doc) -> str:
    return str((doc.specific or {}).get("question") or doc.query)
