"""Connectors to other frameworks: validation that never stalls a training loop, and scorers for evaluation.

```python
from gradewire.integrations import ValidationScorer

with ValidationScorer("127.0.0.1:50051", "smile:fast", directory="runs/1/validation") as validation:
    for step in range(1000):
        train()
        if step % 100 == 0:
            validation.submit(step, [{**row, "prediction": answer(row["question"])} for row in rows])
```

Each framework has a module, and only that module imports the framework: `training.lightning`, `training.hugging_face`
and `training.torch_metric` for training, and modules such as `evaluation.inspect_ai` for evaluation. `training.sinks`
contains `CsvSink`, `MlflowSink`, `TensorBoardSink` and `WandbSink`.
"""

from gradewire.integrations.training.sinks import Sink
from gradewire.integrations.training.spool import SpoolLimits
from gradewire.integrations.training.steps import StepMetric, StepScores, StepState
from gradewire.integrations.training.validation import ValidationScorer, ValidationSettings

__all__ = ["Sink", "SpoolLimits", "StepMetric", "StepScores", "StepState", "ValidationScorer", "ValidationSettings"]
