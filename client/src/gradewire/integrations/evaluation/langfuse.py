"""An evaluator for Langfuse's experiments.

```python
from langfuse import get_client
from gradewire.integrations.evaluation.langfuse import gradewire_evaluator

data = [{"input": "What sleeps?", "expected_output": ["cat", "a cat"]}]
get_client().run_experiment(name="pets", data=data, task=answer, evaluators=[gradewire_evaluator()])
```
"""

from collections.abc import Awaitable, Mapping
from typing import Any, Protocol

from gradewire.errors import InvalidRequest, needed_by
from gradewire.integrations.evaluation.evaluator import METRIC, AnswerEvaluator, Evaluation
from gradewire.rewards.answer import Extraction

with needed_by("gradewire.integrations.evaluation.langfuse"):
    from langfuse import Evaluation as LangfuseEvaluation


class Evaluator(Protocol):
    """The function that `run_experiment` calls for each item."""

    def __call__(
        self,
        *,
        input: Any,  # noqa: A002 - Langfuse's name
        output: Any,
        expected_output: Any,
        metadata: Mapping[str, Any] | None = None,
        **_: Any,
    ) -> Awaitable[list[LangfuseEvaluation]]:
        """Grade one item."""


def gradewire_evaluator(
    metric: str = METRIC,
    name: str = "gradewire",
    address: str | None = None,
    deadline_s: float | None = None,
    extraction: Extraction | None = None,
) -> Evaluator:
    """Return an evaluator that grades `output` against `expected_output`, a string or a list of right answers.

    A scored item gets a numeric score NAME, and a categorical score NAME_label with the label. An item that could not
    be scored gets only NAME_label, with the status, because Langfuse requires a value for a numeric score.

    Args:
        metric: One metric; see `Client.score`.
        name: The score's name in Langfuse.
        address: See `AnswerEvaluator`.
        deadline_s: See `AnswerEvaluator`.
        extraction: See `AnswerEvaluator`.
    """
    evaluator = AnswerEvaluator(metric, address, deadline_s=deadline_s, extraction=extraction)

    async def grade(
        *,
        input: Any,  # noqa: A002 - Langfuse's name
        output: Any,
        expected_output: Any,
        **_: Any,
    ) -> list[LangfuseEvaluation]:
        if expected_output is None:
            raise InvalidRequest("the item has no expected_output: give a string or a list of right answers")
        question = input.get("question", "") if isinstance(input, Mapping) else input
        asked = {"question": question, "references": expected_output, "prediction": output}
        return _scores(name, (await evaluator.evaluate_all_async([asked]))[0])

    grade.__name__ = name
    return grade


def _scores(name: str, evaluation: Evaluation) -> list[LangfuseEvaluation]:
    details: dict[str, Any] = {"comment": evaluation.explanation, "metadata": evaluation.to_dict()}
    label = evaluation.label if evaluation.scored else str(evaluation.status)
    labels = [LangfuseEvaluation(name=f"{name}_label", value=label, data_type="CATEGORICAL", **details)]
    if evaluation.value is None:
        return labels
    return [LangfuseEvaluation(name=name, value=evaluation.value, data_type="NUMERIC", **details), *labels]
