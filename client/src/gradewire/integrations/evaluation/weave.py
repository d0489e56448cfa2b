"""A scorer for Weave.

```python
import weave
from gradewire.integrations.evaluation.weave import GradewireScorer

rows = [{"question": "What sleeps?", "references": ["cat"]}]
evaluation = weave.Evaluation(dataset=rows, scorers=[GradewireScorer()])
```
"""

from collections.abc import Sequence
from typing import Any

from gradewire.errors import needed_by
from gradewire.integrations.evaluation.evaluator import METRIC, AnswerEvaluator

with needed_by("gradewire.integrations.evaluation.weave"):
    import weave


class GradewireScorer(weave.Scorer):
    """A scorer of a model's output. Without a score, score and verdict are None, so no summary counts them.

    It reads the dataset's columns `references` and `question`; `column_map` names others.

    Attributes:
        metric: One metric, as in `Client.score`.
        address: As in `AnswerEvaluator`. Put a token into GRADEWIRE_TOKEN, because Weave stores a scorer's attributes.
        deadline_s: As in `AnswerEvaluator`.
    """

    metric: str = METRIC
    address: str | None = None
    deadline_s: float | None = None

    @weave.op
    async def score(self, *, output: str, references: str | Sequence[str], question: str = "") -> dict[str, Any]:
        """Grade one output.

        Returns:
            `score` (number or None), `right` (verdict or None), `explanation`, and other values as `details`.
        """
        evaluator = AnswerEvaluator(self.metric, self.address, deadline_s=self.deadline_s)
        evaluation = await evaluator.evaluate_async(question=question, references=references, answer=output)
        return {
            "score": evaluation.value,
            "right": evaluation.correct,
            "explanation": evaluation.explanation,
            "details": {name: str(value) for name, value in evaluation.to_dict().items()},
        }
