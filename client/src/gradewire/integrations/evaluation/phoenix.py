"""An evaluator for Phoenix (arize-phoenix-evals).

```python
from phoenix.evals import evaluate_dataframe
from gradewire.integrations.evaluation.phoenix import GradewireEvaluator

evaluate_dataframe(frame, [GradewireEvaluator()])  # columns: output, expected, input
```
"""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from gradewire.errors import needed_by
from gradewire.integrations.evaluation.evaluator import METRIC, AnswerEvaluator, Evaluation
from gradewire.rewards.answer import Extraction

with needed_by("gradewire.integrations.evaluation.phoenix", install="arize-phoenix-evals"):
    from phoenix.evals import Evaluator, Score


class GradedRow(BaseModel):
    """The fields that the evaluator reads from a row.

    Attributes:
        output: The answer.
        expected: The right answer, or a list of right answers.
        input: The question.
    """

    output: str
    expected: str | list[str]
    input: str = ""


class GradewireEvaluator(Evaluator):
    """An evaluator that grades `output` against `expected`. After a failure, the Score has an explanation but no score.

    Args:
        metric: One metric; see `Client.score`.
        name: The evaluator's name in Phoenix.
        address: See `AnswerEvaluator`.
        deadline_s: See `AnswerEvaluator`.
        extraction: See `AnswerEvaluator`.
    """

    def __init__(
        self,
        metric: str = METRIC,
        name: str = "gradewire",
        address: str | None = None,
        deadline_s: float | None = None,
        extraction: Extraction | None = None,
    ) -> None:
        super().__init__(name=name, kind="code", direction="maximize", input_schema=GradedRow)
        self._evaluator = AnswerEvaluator(metric, address, deadline_s=deadline_s, extraction=extraction)

    def _evaluate(self, eval_input: Mapping[str, Any]) -> list[Score]:
        return self._scores(self._evaluator.evaluate(**_arguments(eval_input)))

    async def _async_evaluate(self, eval_input: Mapping[str, Any]) -> list[Score]:
        return self._scores(await self._evaluator.evaluate_async(**_arguments(eval_input)))

    def _scores(self, evaluation: Evaluation) -> list[Score]:
        return [
            Score(
                name=self.name,
                score=evaluation.value,
                label=evaluation.label if evaluation.scored else None,
                explanation=evaluation.explanation,
                metadata=evaluation.to_dict(),
                kind=self.kind,
                direction=self.direction,
            )
        ]


def _arguments(row: Mapping[str, Any]) -> dict[str, Any]:
    return {"question": row.get("input") or "", "references": row["expected"], "answer": row["output"]}
