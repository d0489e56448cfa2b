"""Scores of steps in MLflow."""

import re
import time
from typing import Final

from gradewire.errors import InvalidRequest, MissingExtra
from gradewire.integrations.validation.step_scores import StepScores

# MLflow refuses all others in names.
_OTHER: Final = re.compile(r"[^\w\-. :/]")


class MlflowSink:
    """Logs to a run by its id, for MLflow's active run is one of the thread that started it.

    Args:
        run_id: None: that of the active run. It is not ended here.

    Raises:
        MissingExtra: MLflow is not installed.
        InvalidRequest: No run is given, and none is active.
    """

    def __init__(self, run_id: str | None = None) -> None:
        try:
            import mlflow  # noqa: PLC0415 - optional and slow to import
            from mlflow.entities import Metric, RunTag  # noqa: PLC0415 - as above
        except ImportError as error:
            raise MissingExtra(f"MlflowSink needs MLflow ({error}): pip install 'gradewire[mlflow]'") from error
        active = mlflow.active_run()
        self._run_id = run_id or (active and active.info.run_id)
        if not self._run_id:
            raise InvalidRequest("run_id: no MLflow run is active; call mlflow.start_run first, or give one")
        self._client = mlflow.MlflowClient()
        self._metric, self._tag = Metric, RunTag

    def write(self, scores: StepScores) -> None:
        """Logs its scalars under their step; lines and digests become tags of the run."""
        now_ms = int(1000 * time.time())
        metrics = [self._metric(_name(tag), value, now_ms, scores.step) for tag, value in scores.scalars().items()]
        tags = [
            self._tag(_name(f"{scores.name}/{label}/{what}"), value)
            for label, metric in scores.metrics.items()
            for what, value in (("line", metric.line), ("digest", metric.digest))
            if value
        ]
        self._client.log_batch(self._run_id, metrics=metrics, tags=tags)

    def close(self) -> None:
        """The run is the caller's, who ends it."""


def _name(written: str) -> str:
    return _OTHER.sub("_", written)
