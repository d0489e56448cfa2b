"""A scorer for `mlflow.genai.evaluate`.

```python
import mlflow
from gradewire.integrations.evaluation.mlflow import GradewireScorer

row = {"inputs": {"question": "What sleeps?"}, "outputs": "A small cat.", "expectations": {"references": ["cat"]}}
mlflow.genai.evaluate(data=[row], scorers=[GradewireScorer()])
```
"""

from collections.abc import Mapping, Sequence
from typing import Any

from gradewire.errors import InvalidRequest, needed_by
from gradewire.integrations.evaluation.evaluator import METRIC, AnswerEvaluator, Evaluation
from gradewire.rewards.answer import Extraction

with needed_by("gradewire.integrations.evaluation.mlflow"):
    from mlflow.entities import AssessmentError, AssessmentSource, Feedback
    from mlflow.genai import Scorer

REFERENCES = ("references", "expected_response", "expected_answer", "answer")
"""Usual keys of the references in `expectations`. The first existing key is used."""
QUESTIONS = ("question", "query", "input", "prompt")
"""Usual keys of the question in `inputs`. The first existing key is used."""


class GradewireScorer(Scorer):
    """A scorer for string `outputs`. Averages ignore failures, which become feedback with an error and no value.

    Attributes:
        name: The scorer's name in MLflow.
        metric: One metric; see `Client.score`.
        address: See `AnswerEvaluator`.
        deadline_s: See `AnswerEvaluator`.
        extraction: See `AnswerEvaluator`.
    """

    name: str = "gradewire"
    metric: str = METRIC
    address: str | None = None
    deadline_s: float | None = None
    extraction: Extraction | None = None

    def __call__(
        self, *, inputs: Mapping[str, Any] | None = None, outputs: Any, expectations: Mapping[str, Any] | None = None
    ) -> Feedback:
        """Grade one row.

        Raises:
            InvalidRequest: The row has no references. MLflow shows the message, which lists possible keys, on the row.
        """
        references = _first(expectations, REFERENCES)
        if references is None:
            raise InvalidRequest(f"expectations has no references: give one of {', '.join(REFERENCES)}")
        evaluator = AnswerEvaluator(self.metric, self.address, deadline_s=self.deadline_s, extraction=self.extraction)
        asked = {"question": _first(inputs, QUESTIONS) or "", "references": references, "prediction": outputs}
        return self._feedback(evaluator.evaluate_all([asked])[0])

    def _feedback(self, evaluation: Evaluation) -> Feedback:
        error = None if evaluation.scored else AssessmentError(evaluation.error_type, evaluation.explanation)
        return Feedback(
            name=self.name,
            value=evaluation.value,
            error=error,
            rationale=evaluation.explanation,
            source=AssessmentSource("CODE", f"gradewire/{self.metric}"),
            metadata={name: str(value) for name, value in evaluation.to_dict().items()},
        )


def _first(values: Mapping[str, Any] | None, names: Sequence[str]) -> Any:
    return next((values[name] for name in names if name in values), None) if values else None
