"""gradewire where models are trained: validation that never stalls the loop.

```python
from gradewire.integrations import ValidationScorer

with ValidationScorer("127.0.0.1:50051", "smile:fast", directory="runs/1/validation") as validation:
    for step in range(1000):
        train()
        if step % 100 == 0:
            validation.submit(step, [{**row, "prediction": answer(row["question"])} for row in rows])
```

Frameworks have modules of their own, which import theirs: `lightning`, `hugging_face`, `torch_metric`, and
`sinks.tensorboard`, `sinks.wandb`, `sinks.mlflow`.
"""

from gradewire.integrations.training.sinks import Sink
from gradewire.integrations.training.spool import SpoolLimits
from gradewire.integrations.training.step_scores import StepMetric, StepScores, StepState
from gradewire.integrations.training.validation import ValidationScorer, ValidationSettings

__all__ = ["Sink", "SpoolLimits", "StepMetric", "StepScores", "StepState", "ValidationScorer", "ValidationSettings"]
