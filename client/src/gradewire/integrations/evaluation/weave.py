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
from gradewire.rewards.answer import Extraction

with needed_by("gradewire.integrations.evaluation.weave"):
    import weave


class GradewireScorer(weave.Scorer):
    """A scorer for a model's output. If scoring fails, `score` and `right` are None, and summaries ignore them.

    The scorer reads the dataset's columns `references` and `question`; choose other columns with `column_map`.

    Attributes:
        metric: One metric; see `Client.score`.
        address: See `AnswerEvaluator`. Set the token in GRADEWIRE_TOKEN, because Weave stores a scorer's attributes.
        deadline_s: See `AnswerEvaluator`.
        extraction: See `AnswerEvaluator`.
    """

    metric: str = METRIC
    address: str | None = None
    deadline_s: float | None = None
    extraction: Extraction | None = None

    @weave.op
    async def score(self, *, output: str, references: str | Sequence[str], question: str = "") -> dict[str, Any]:
        """Grade one output.

        Returns:
            `score` (number or None), `right` (verdict or None), `explanation`, and other values in `details`.
        """
        evaluator = AnswerEvaluator(self.metric, self.address, deadline_s=self.deadline_s, extraction=self.extraction)
        evaluation = await evaluator.evaluate_async(question=question, references=references, answer=output)
        return {
            "score": evaluation.value,
            "right": evaluation.correct,
            "explanation": evaluation.explanation,
            "details": {name: str(value) for name, value in evaluation.to_dict().items()},
        }
