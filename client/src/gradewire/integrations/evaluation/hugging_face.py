"""A metric for Hugging Face's `evaluate`.

```python
from gradewire.integrations.evaluation.hugging_face import GradewireMetric

metric = GradewireMetric()
result = metric.compute(predictions=["A small cat."], references=[["cat", "a cat"]], questions=["What sleeps?"])
print(result["gradewire"], result["gradewire_scored"])
```
"""

from collections.abc import Sequence
from typing import Any

from gradewire.errors import needed_by
from gradewire.integrations.evaluation.evaluator import METRIC, AnswerEvaluator
from gradewire.rewards.answer import Extraction

with needed_by("gradewire.integrations.evaluation.hugging_face", install="evaluate"):
    from datasets import Features, Value
    from datasets import Sequence as ListOf
    from evaluate import Metric, MetricInfo

_TEXT = Value("string")


class GradewireMetric(Metric):
    """A metric that grades predictions. The mean covers only scored predictions; the result contains their number.

    The references for a prediction are a string or a list of right answers.

    Args:
        metric: One metric; see `Client.score`.
        address: See `AnswerEvaluator`.
        deadline_s: Deadline of each `compute`; see `AnswerEvaluator`.
        extraction: See `AnswerEvaluator`.
        **settings: Settings for `evaluate.Metric`, such as `experiment_id`, `num_process` or `cache_dir`.
    """

    def __init__(
        self,
        metric: str = METRIC,
        address: str | None = None,
        deadline_s: float | None = None,
        extraction: Extraction | None = None,
        **settings: Any,
    ) -> None:
        self._evaluator = AnswerEvaluator(metric, address, deadline_s=deadline_s, extraction=extraction)
        super().__init__(**settings)

    def _info(self) -> MetricInfo:
        return MetricInfo(
            description="Grades free-form answers against references on a gradewire server.",
            citation="",
            inputs_description="predictions, references (each a string or a list of strings), questions (optional).",
            features=[
                Features({"predictions": _TEXT, "references": ListOf(_TEXT)}),
                Features({"predictions": _TEXT, "references": _TEXT}),
            ],
        )

    def _compute(
        self,
        *,
        predictions: Sequence[str],
        references: Sequence[str | Sequence[str]],
        questions: Sequence[str] | None = None,
    ) -> dict[str, Any]:
        items = [
            {"prediction": prediction, "references": right, "question": question}
            for prediction, right, question in zip(
                predictions, references, questions or [""] * len(predictions), strict=True
            )
        ]
        evaluations = self._evaluator.evaluate_all(items)
        values = [evaluation.value for evaluation in evaluations]
        scored = [value for value in values if value is not None]
        verdicts = [evaluation.correct for evaluation in evaluations if evaluation.correct is not None]
        return {
            "gradewire": sum(scored) / len(scored) if scored else None,
            "gradewire_share_right": sum(verdicts) / len(verdicts) if verdicts else None,
            "gradewire_scored": len(scored),
            "gradewire_unscored": len(values) - len(scored),
            "scores": values,
            "labels": [evaluation.label for evaluation in evaluations],
            "statuses": [str(evaluation.status) for evaluation in evaluations],
            "metric_line": next((evaluation.metric_line for evaluation in evaluations if evaluation.scored), ""),
        }
