"""Scorers for Inspect.

```python
from inspect_ai import Task
from inspect_ai.dataset import Sample
from inspect_ai.solver import generate
from gradewire.integrations.evaluation.inspect_ai import gradewire_score, gradewire_verdict

Task(
    dataset=[Sample(input="What sleeps on the sill?", target=["cat", "a cat"])],
    solver=generate(),
    scorer=[gradewire_score(), gradewire_verdict()],
)
```
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from gradewire.errors import needed_by
from gradewire.integrations.evaluation.evaluator import METRIC, AnswerEvaluator, Evaluation
from gradewire.results import Status
from gradewire.rewards.answer import Extraction

with needed_by("gradewire.integrations.evaluation.inspect_ai"):
    from inspect_ai import scorer as inspect
    from inspect_ai.solver import TaskState

REASONS: Final[Mapping[Status, str]] = {
    Status.EMPTY_PREDICTION: "no_response",
    Status.UNPARSABLE: "grader_failed",
    Status.INCONSISTENT: "grader_failed",
    Status.JUDGE_CANNOT_SEE: "grader_failed",
}
"""Inspect's reasons for missing scores, by status; other statuses get "scoring_failed"."""

_Scorer = Callable[[TaskState, inspect.Target], Awaitable[inspect.Score]]


@inspect.scorer(metrics=[inspect.mean(), inspect.stderr()])
def gradewire_score(
    metric: str = METRIC,
    address: str | None = None,
    deadline_s: float | None = None,
    extraction: Extraction | None = None,
) -> _Scorer:
    """Score each sample's completion against its targets; each target is a right answer.

    Args:
        metric: One metric; see `Client.score`.
        address: See `AnswerEvaluator`. Set the token in GRADEWIRE_TOKEN, because Inspect logs arguments.
        deadline_s: See `AnswerEvaluator`.
        extraction: See `AnswerEvaluator`.
    """
    return _scorer(
        AnswerEvaluator(metric, address, deadline_s=deadline_s, extraction=extraction),
        lambda evaluation: evaluation.value,
    )


@inspect.scorer(metrics=[inspect.accuracy(), inspect.stderr()])
def gradewire_verdict(
    metric: str = METRIC,
    address: str | None = None,
    deadline_s: float | None = None,
    extraction: Extraction | None = None,
) -> _Scorer:
    """Return the metric's verdict, C or I, for each sample, even if the verdict is uncertain (label "uncertain").

    The arguments are the same as for `gradewire_score`.
    """

    def verdict(evaluation: Evaluation) -> str | None:
        return None if evaluation.correct is None else inspect.CORRECT if evaluation.correct else inspect.INCORRECT

    return _scorer(AnswerEvaluator(metric, address, deadline_s=deadline_s, extraction=extraction), verdict)


def _scorer(evaluator: AnswerEvaluator, value_of: Callable[[Evaluation], str | float | None]) -> _Scorer:
    async def score(state: TaskState, target: inspect.Target) -> inspect.Score:
        answer = state.output.completion
        evaluation = await evaluator.evaluate_async(question=state.input_text, references=list(target), answer=answer)
        details: dict[str, Any] = {
            "answer": answer,
            "explanation": evaluation.explanation,
            "metadata": evaluation.to_dict(),
        }
        value = value_of(evaluation)
        if value is None:
            return inspect.Score.unscored(reason=REASONS.get(evaluation.status, "scoring_failed"), **details)
        return inspect.Score(value=value, **details)

    return score
