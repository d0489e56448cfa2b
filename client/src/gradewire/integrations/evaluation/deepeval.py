"""A metric for DeepEval.

```python
from deepeval import evaluate
from deepeval.test_case import LLMTestCase
from gradewire.integrations.evaluation.deepeval import GradewireMetric

case = LLMTestCase(input="What sleeps?", actual_output="A small cat.", expected_output="cat")
evaluate([case], [GradewireMetric()])
```
"""

from typing import Any

from gradewire.errors import needed_by
from gradewire.integrations.evaluation.evaluator import METRIC, AnswerEvaluator, Evaluation
from gradewire.rewards.answer import Extraction

with needed_by("gradewire.integrations.evaluation.deepeval"):
    from deepeval.errors import MissingTestCaseParamsError
    from deepeval.metrics import BaseMetric
    from deepeval.test_case import LLMTestCase, SingleTurnParams

REFERENCES = "references"
"""Metadata key for a list of right answers. Without this key, `expected_output` is the right answer."""


class GradewireMetric(BaseMetric):
    """A metric that grades `actual_output`. If scoring fails, the test case has an error and no score.

    Args:
        metric: One metric; see `Client.score`.
        threshold: The lowest passing score. The default suits `correctness`, which counts 0.5 and above as right.
        address: See `AnswerEvaluator`.
        deadline_s: See `AnswerEvaluator`.
        extraction: See `AnswerEvaluator`.
    """

    _required_params = (SingleTurnParams.INPUT, SingleTurnParams.ACTUAL_OUTPUT, SingleTurnParams.EXPECTED_OUTPUT)

    def __init__(
        self,
        metric: str = METRIC,
        threshold: float = 0.5,
        address: str | None = None,
        deadline_s: float | None = None,
        extraction: Extraction | None = None,
    ) -> None:
        # DeepEval copies a metric by reading its arguments from attributes with the same names.
        self.metric = metric
        self.threshold = threshold
        self.address = address
        self.deadline_s = deadline_s
        self.extraction = extraction
        self.evaluation: Evaluation | None = None
        self._evaluator = AnswerEvaluator(metric, address, deadline_s=deadline_s, extraction=extraction)

    def measure(self, test_case: LLMTestCase, *_: Any, **__: Any) -> float | None:
        """Return the score, or None if scoring failed.

        Raise the errors of `AnswerEvaluator.evaluate`. If the references or the output are missing, raise
        MissingTestCaseParamsError.
        """
        return self._take(self._evaluator.evaluate(**self._arguments(test_case)))

    async def a_measure(self, test_case: LLMTestCase, *_: Any, **__: Any) -> float | None:
        """Return the score like `measure`, but asynchronously."""
        return self._take(await self._evaluator.evaluate_async(**self._arguments(test_case)))

    @property
    def __name__(self) -> str:
        return f"gradewire {self.metric}"

    def _arguments(self, test_case: LLMTestCase) -> dict[str, Any]:
        references = (test_case.metadata or {}).get(REFERENCES) or test_case.expected_output
        for name, value in (("actual_output", test_case.actual_output), ("expected_output", references)):
            if value is None:
                raise MissingTestCaseParamsError(f"{name!r} cannot be None for the metric {self.__name__!r}")
        return {"question": test_case.input, "references": references, "answer": test_case.actual_output}

    def _take(self, evaluation: Evaluation) -> float | None:
        self.evaluation = evaluation
        self.score, self.reason = evaluation.value, evaluation.explanation
        self.error = None if evaluation.scored else evaluation.explanation
        self.score_breakdown = evaluation.to_dict()
        self.success = self.is_successful()
        return self.score
