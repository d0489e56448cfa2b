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
    """A scorer of a model's output; where there is no score, score and verdict are None, which no summary counts.

    The columns `references` and `question` of the dataset are read; `column_map` names others.

    Attributes:
        metric: One metric, as `Client.score` takes it.
        address: As in `AnswerEvaluator`. A token comes from GRADEWIRE_TOKEN: Weave stores a scorer's attributes.
        deadline_s: As in `AnswerEvaluator`.
    """

    metric: str = METRIC
    address: str | None = None
    deadline_s: float | None = None

    @weave.op
    async def score(self, *, output: str, references: str | Sequence[str], question: str = "") -> dict[str, Any]:
        """Grade one output.

        Returns:
            `score` (number or None), `right` (verdict or None), `explanation`, and what else is known as `details`.
        """
        evaluator = AnswerEvaluator(self.metric, self.address, deadline_s=self.deadline_s)
        evaluation = await evaluator.evaluate_async(question=question, references=references, answer=output)
        return {
            "score": evaluation.value,
            "right": evaluation.correct,
            "explanation": evaluation.explanation,
            "details": {name: str(value) for name, value in evaluation.to_dict().items()},
        }
