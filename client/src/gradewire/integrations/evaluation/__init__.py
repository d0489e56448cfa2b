"""gradewire as a scorer of evaluation frameworks.

```python
from gradewire.integrations.evaluation import AnswerEvaluator

evaluator = AnswerEvaluator("correctness", "127.0.0.1:50051")
evaluation = evaluator.evaluate(question="What sleeps?", references=["cat"], answer="It is a small cat.")
print(evaluation.label, evaluation.explanation)
```

Each framework has its own module, which imports it: `inspect_ai`, `lm_eval`, `deepeval` and so on.
"""

from gradewire.integrations.evaluation.evaluator import AnswerEvaluator, Evaluation, Label, close_connections

__all__ = ["AnswerEvaluator", "Evaluation", "Label", "close_connections"]
