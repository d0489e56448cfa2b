"""Scorers for evaluation frameworks.

```python
from gradewire.integrations.evaluation import AnswerEvaluator

evaluator = AnswerEvaluator("correctness", "127.0.0.1:50051")
evaluation = evaluator.evaluate(question="What sleeps?", references=["cat"], answer="It is a small cat.")
print(evaluation.label, evaluation.explanation)
```

Each framework has a module, such as `inspect_ai` or `lm_eval`, and only that module imports the framework.
"""

from gradewire.integrations.evaluation.evaluator import AnswerEvaluator, Evaluation, Label, close_connections

__all__ = ["AnswerEvaluator", "Evaluation", "Label", "close_connections"]
