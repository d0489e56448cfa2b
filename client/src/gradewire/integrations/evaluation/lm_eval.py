"""A metric, a filter and a `process_results` for lm-eval. Importing this module registers the metric and the filter.

Name the fields of a task's documents in `utils.py`, next to the task's YAML file:

```python
from gradewire.integrations.evaluation.lm_eval import results_function

process_results = results_function(question="question", references="answers")
```

and write `process_results: !function utils.process_results` in the YAML file. To grade all of the task's documents in
one call, add the filter `gradewire` to the task.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self

from gradewire.errors import InvalidRequest, needed_by
from gradewire.integrations.evaluation.evaluator import METRIC, AnswerEvaluator, Evaluation

with needed_by("gradewire.integrations.evaluation.lm_eval"):
    from lm_eval.api.filter import Filter
    from lm_eval.api.metrics import nanmean
    from lm_eval.api.registry import register_filter, register_metric

NAME = "gradewire"
VERDICT = "gradewire_right"
"""Names of a document's values: the score, and the verdict (1 or 0) if the metric returns verdicts."""


class GradedAnswer(str):
    """An answer with the filter's evaluation. lm-eval sees only the unchanged answer."""

    __slots__ = ("evaluation",)
    evaluation: Evaluation | None

    def __new__(cls, text: str, evaluation: Evaluation | None = None) -> Self:
        """Return the text with its evaluation."""
        answer = super().__new__(cls, text)
        answer.evaluation = evaluation
        return answer


class _OfOneTarget(dict[str, float]):
    """The values for a document with one target. With several targets, lm-eval would turn every score except 0 into 1.

    If there are several targets, lm-eval reads values by name. Reading by name therefore raises InvalidRequest.
    """

    def __getitem__(self, name: str) -> float:
        raise InvalidRequest(
            f"metric {name}: the documents have several targets, but lm-eval passes one target at a time: set "
            "process_results to results_function(…), or use the filter gradewire and one target"
        )


@register_metric(metric=NAME, higher_is_better=True, aggregation=nanmean.__name__)
def gradewire(
    references: Sequence[str], predictions: Sequence[str], gradewire_metric: str = METRIC, **connection: Any
) -> dict[str, float]:
    """Grade one answer against one target. If there is no score, return no value, so that averages ignore the document.

    Args:
        references: The target.
        predictions: The answer. If the filter has already graded it, the filter's evaluation is used.
        gradewire_metric: One metric; see `Client.score`. The metric gets no question, because lm-eval passes none.
        **connection: `address`, `deadline_s` and `extraction`; see `AnswerEvaluator`.
    """
    (reference,), (answer,) = references, predictions
    evaluation = answer.evaluation if isinstance(answer, GradedAnswer) else None
    if evaluation is None:
        evaluator = AnswerEvaluator(gradewire_metric, **connection)
        evaluation = evaluator.evaluate(references=str(reference), answer=str(answer))
    return _OfOneTarget(_values(evaluation))


def results_function(
    *, question: str = "question", references: str = "answers", metric: str = METRIC, **connection: Any
) -> Callable[[Mapping[str, Any], Sequence[Any]], dict[str, float]]:
    """Return a `process_results` function for documents with these fields.

    Args:
        question: The field with the question; "" if there is no question.
        references: The field with one or more right answers.
        metric: One metric; see `Client.score`.
        **connection: `address`, `deadline_s` and `extraction`; see `AnswerEvaluator`.
    """
    evaluator = AnswerEvaluator(metric, **connection)

    def process_results(doc: Mapping[str, Any], results: Sequence[Any]) -> dict[str, float]:
        answer = _only(results[0])
        evaluation = answer.evaluation if isinstance(answer, GradedAnswer) else None
        return _values(evaluation or evaluator.evaluate_all([_item(doc, answer, question, references)])[0])

    return process_results


@register_filter(NAME)
class GradewireFilter(Filter):
    """A filter that grades a task's answers in one call, and returns the answers with their evaluations.

    The arguments are the same as for `results_function`, but `metric` is called `gradewire_metric`.
    """

    def __init__(
        self,
        *,
        question: str = "question",
        references: str = "answers",
        gradewire_metric: str = METRIC,
        **connection: Any,
    ) -> None:
        super().__init__()
        self._fields = (question, references)
        self._evaluator = AnswerEvaluator(gradewire_metric, **connection)

    def apply(self, resps: Iterable[Any], docs: Sequence[Mapping[str, Any]]) -> list[GradedAnswer]:
        """Return the graded answers."""
        answers = [_only(answer) for answer in resps]
        items = [_item(doc, answer, *self._fields) for doc, answer in zip(docs, answers, strict=True)]
        evaluations = self._evaluator.evaluate_all(items)
        return [GradedAnswer(answer, evaluation) for answer, evaluation in zip(answers, evaluations, strict=True)]


def _values(evaluation: Evaluation) -> dict[str, float]:
    values = {} if evaluation.value is None else {NAME: evaluation.value}
    return values if evaluation.correct is None else values | {VERDICT: float(evaluation.correct)}


def _only(answer: Any) -> str:
    if isinstance(answer, str):
        return answer
    if len(answer) != 1:
        raise InvalidRequest(f"a document has {len(answer)} answers: add the filter take_first before gradewire")
    text: str = answer[0]
    return text


def _item(doc: Mapping[str, Any], answer: str, question: str, references: str) -> dict[str, Any]:
    for name in (question, references):
        if name and name not in doc:
            raise InvalidRequest(f"a document has no field {name!r}: give one of {', '.join(doc)}")
    asked = {"question": doc[question]} if question else {}
    return {"references": doc[references], "prediction": answer, **asked}
