"""Scores of steps in Weights & Biases."""

from typing import Any

from gradewire.errors import InvalidRequest, MissingExtra
from gradewire.integrations.validation.step_scores import StepScores


class WandbSink:
    """Logs to a run, each data set over a step of its own (`NAME/step`).

    W&B drops what comes with an earlier `step=` than the last, so late scores are rows of their own, which its charts
    draw over `NAME/step`. A loop that logs with `step=` itself should give a run of its own here, for each row takes a
    number of W&B's own counter; loops with a step metric of their own, as Lightning's and Hugging Face's, need not.

    Args:
        run: None: the active one. It is not finished here.

    Raises:
        MissingExtra: wandb is not installed.
        InvalidRequest: No run is given, and none is active.
    """

    def __init__(self, run: Any = None) -> None:
        try:
            import wandb  # noqa: PLC0415 - optional and slow to import
        except ImportError as error:
            raise MissingExtra(f"WandbSink needs wandb ({error}): pip install 'gradewire[wandb]'") from error
        self._run = run or wandb.run
        if self._run is None:
            raise InvalidRequest("run: no W&B run is active; call wandb.init first, or give one")
        self._names: set[str] = set()

    def write(self, scores: StepScores) -> None:
        """Logs its scalars as one row; lines and digests go into the run's summary."""
        step_name = f"{scores.name}/step"
        if scores.name not in self._names:
            self._names.add(scores.name)
            self._run.define_metric(step_name, hidden=True)
            self._run.define_metric(f"{scores.name}/*", step_metric=step_name)
        self._run.log({step_name: scores.step, **scores.scalars()})
        for label, metric in scores.metrics.items():
            self._run.summary.update({f"{scores.name}/{label}/line": metric.line, f"{label}/digest": metric.digest})

    def close(self) -> None:
        """The run is the caller's, who finishes it."""
