"""Sinks for the scores of steps: CSV, MLflow, TensorBoard, Weights & Biases; each is imported when it is made."""

import csv
import importlib.util
import io
import json
import os
import re
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, Protocol

from gradewire.errors import InvalidRequest, needed_by
from gradewire.integrations.training.steps import StepScores

__all__ = ["CsvSink", "MlflowSink", "TensorBoardSink", "WandbSink", "available_sinks"]


class Sink(Protocol):
    """A receiver of the scores of steps, also late and out of order; called on one thread, its errors are logged."""

    def write(self, scores: StepScores) -> None:
        """Write the scores of one step under that step."""

    def close(self) -> None:
        """Write out what is left; called once, by `ValidationScorer.close`."""


COLUMNS: Final = (
    "step",
    "name",
    "metric",
    "mean",
    "share_right",
    "items",
    "scored",
    "not_scored_share",
    "counts",
    "line",
    "digest",
)


class CsvSink:
    """A CSV file with a line for each metric of a step; late scores come later in it, under their own step.

    Args:
        path: Of the file; made with its folder when missing.

    Raises:
        InvalidRequest: The file has other columns.
        OSError: It cannot be used.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        header = _lines([dict(zip(COLUMNS, COLUMNS, strict=True))])
        found = self._path.read_bytes()[: len(header)] if self._path.exists() else b""
        if not found:
            self._path.write_bytes(header)
        elif found != header:
            raise InvalidRequest(f"path={str(self._path)!r} has other columns than {', '.join(COLUMNS)}: give another")

    def write(self, scores: StepScores) -> None:
        """Append its lines in one write."""
        step = {"step": scores.step, "name": scores.name, "items": scores.items}
        rows = [
            {**step, **asdict(metric), "metric": label, "counts": json.dumps(metric.counts)}
            for label, metric in scores.metrics.items()
        ]
        with self._path.open("ab", buffering=0) as file:
            file.write(_lines(rows))

    def close(self) -> None:
        """Do nothing: every step is already written."""


def _lines(rows: Iterable[Mapping[str, object]]) -> bytes:
    text = io.StringIO()
    csv.DictWriter(text, COLUMNS, extrasaction="ignore", lineterminator="\n").writerows(rows)
    return text.getvalue().encode(errors="backslashreplace")


# MLflow refuses all others in names.
_OTHER: Final = re.compile(r"[^\w\-. :/]")


class MlflowSink:
    """An MLflow run, addressed by its id, for the active run is one of the thread that started it.

    Args:
        run_id: None: that of the active run. It is not ended here.

    Raises:
        MissingExtra: MLflow is not installed.
        InvalidRequest: No run is given, and none is active.
    """

    def __init__(self, run_id: str | None = None) -> None:
        with needed_by("MlflowSink", "gradewire[mlflow]"):
            import mlflow  # noqa: PLC0415 - optional and slow to import
            from mlflow.entities import Metric, RunTag  # noqa: PLC0415 - as above
        active = mlflow.active_run()
        self._run_id = run_id or (active and active.info.run_id)
        if not self._run_id:
            raise InvalidRequest("run_id: no MLflow run is active; call mlflow.start_run first, or give one")
        self._client = mlflow.MlflowClient()
        self._metric, self._tag = Metric, RunTag

    def write(self, scores: StepScores) -> None:
        """Log its scalars under their step; lines and digests become tags of the run."""
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
        """Do nothing: the caller ends the run."""


def _name(written: str) -> str:
    return _OTHER.sub("_", written)


class TensorBoardSink:
    """A separate event file in a TensorBoard log directory; each curve's description is the metric's identifier.

    Args:
        log_directory: As other writers of the run have it, or any other below TensorBoard's --logdir.

    Raises:
        MissingExtra: TensorBoard is not installed.
    """

    def __init__(self, log_directory: str | os.PathLike[str]) -> None:
        with needed_by("TensorBoardSink", "gradewire[tensorboard]"):
            from tensorboard.summary import Writer  # noqa: PLC0415 - optional
        self._writer = Writer(os.fspath(log_directory))

    def write(self, scores: StepScores) -> None:
        """Add the scalars of `StepScores.scalars` under their step."""
        for tag, value in scores.scalars().items():
            label = tag.removeprefix(f"{scores.name}/").rpartition("/")[0]
            self._writer.add_scalar(tag, value, scores.step, description=scores.metrics[label].line)
        self._writer.flush()

    def close(self) -> None:
        """Close the event file."""
        self._writer.close()


class WandbSink:
    """A W&B run in which each data set is logged over a step of its own (`NAME/step`).

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
        with needed_by("WandbSink", "gradewire[wandb]"):
            import wandb  # noqa: PLC0415 - optional and slow to import
        self._run = run or wandb.run
        if self._run is None:
            raise InvalidRequest("run: no W&B run is active; call wandb.init first, or give one")
        self._names: set[str] = set()

    def write(self, scores: StepScores) -> None:
        """Log its scalars as one row; lines and digests go into the run's summary."""
        step_name = f"{scores.name}/step"
        if scores.name not in self._names:
            self._names.add(scores.name)
            self._run.define_metric(step_name, hidden=True)
            self._run.define_metric(f"{scores.name}/*", step_metric=step_name)
        self._run.log({step_name: scores.step, **scores.scalars()})
        for label, metric in scores.metrics.items():
            self._run.summary.update({f"{scores.name}/{label}/line": metric.line, f"{label}/digest": metric.digest})

    def close(self) -> None:
        """Do nothing: the caller finishes the run."""


def available_sinks(directory: str | os.PathLike[str]) -> list[Sink]:
    """Return a sink for each tracker that is in use, and always CSV (`DIRECTORY/scores.csv`).

    In use are an active W&B run, an active MLflow run, and TensorBoard where it is installed (`DIRECTORY/tensorboard`).
    A library that nobody imported has no active run, so none is imported to find out.
    """
    sinks: list[Sink] = [CsvSink(Path(directory) / "scores.csv")]
    if getattr(sys.modules.get("wandb"), "run", None) is not None:
        sinks.append(WandbSink())
    if (mlflow := sys.modules.get("mlflow")) is not None and mlflow.active_run() is not None:
        sinks.append(MlflowSink())
    if importlib.util.find_spec("tensorboard") is not None:
        sinks.append(TensorBoardSink(Path(directory) / "tensorboard"))
    return sinks
