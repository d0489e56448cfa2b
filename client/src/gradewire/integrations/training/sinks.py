"""Sinks for step scores: CSV, MLflow, TensorBoard and Weights & Biases. Creating a sink imports its library."""

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
from datetime import UTC, datetime
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, Protocol

from gradewire.errors import InvalidRequest, needed_by
from gradewire.integrations.training.steps import ESTIMATES, StepScores

__all__ = ["CsvSink", "MlflowSink", "TensorBoardSink", "WandbSink", "available_sinks", "read_steps"]


class Sink(Protocol):
    """A receiver of step scores, which may arrive late and out of order.

    A `ValidationScorer` calls its sinks on one thread and logs their exceptions.
    """

    def write(self, scores: StepScores) -> None:
        """Write the scores under their step, `scores.step`."""

    def close(self) -> None:
        """Write remaining data; `ValidationScorer.close` calls this method once."""


COLUMNS: Final = (
    "run",
    "submitted_utc",
    "step",
    "name",
    "metric",
    *ESTIMATES,
    "uncertain",
    "items",
    "scored",
    "not_scored_share",
    "counts",
    "line",
    "digest",
)


class CsvSink:
    """A CSV file with a row for each step and metric. Rows are in the order in which scores arrive.

    A restarted training appends to the file. Each row has the name of its run, and `read_steps` returns one run's rows.

    Args:
        path: The file's path; the file and its folder are created if missing.

    Raises:
        InvalidRequest: The file exists with different columns.
        OSError: The file cannot be used.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        header = _lines([dict(zip(COLUMNS, COLUMNS, strict=True))])
        found = self._path.read_bytes()[: len(header)] if self._path.exists() else b""
        if not found:
            self._path.write_bytes(header)
        elif found != header:
            raise InvalidRequest(f"path='{self._path}' {_other_columns(found)}: give a new file")

    def write(self, scores: StepScores) -> None:
        """Append the step's rows in one write."""
        step: dict[str, object] = {"run": scores.run, "submitted_utc": _utc(scores.submitted_unix_s)}
        step |= {"step": scores.step, "name": scores.name, "items": scores.items}
        rows = [
            {**step, **asdict(metric), "metric": label, "counts": json.dumps(metric.counts)}
            for label, metric in scores.metrics.items()
        ]
        with self._path.open("ab", buffering=0) as file:
            file.write(_lines(rows))

    def close(self) -> None:
        """Do nothing, because every step is already written."""


def read_steps(path: str | os.PathLike[str], run: str | None = None) -> list[dict[str, str]]:
    """Return the rows of one run in a file of `CsvSink`, in the order of the file.

    If a run was resumed and submitted a step again, only the latest submission's rows are returned.

    Args:
        path: The file's path.
        run: The run's name; None means the run that submitted its last step latest.

    Raises:
        InvalidRequest: The file has other columns, or no row of this run.
        OSError: The file cannot be read.
    """
    with Path(path).open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        columns = reader.fieldnames or ()
        if missing := [name for name in COLUMNS if name not in columns]:
            written = ",".join(columns).encode(errors="surrogateescape")
            why = _other_columns(written) if columns else f"has no column {missing[0]}"
            raise InvalidRequest(f"path='{path}' {why}: give a file that CsvSink wrote")
        rows = list(reader)
    if run is None:
        run = max(rows, key=itemgetter("submitted_utc"), default={"run": ""})["run"]
    found = [row for row in rows if row["run"] == run]
    if rows and not found:
        runs = ", ".join(dict.fromkeys(row["run"] for row in rows))
        raise InvalidRequest(f"run={run!r}: '{path}' has no such run. Choose one of {runs}")
    by_time = sorted(found, key=itemgetter("submitted_utc"))
    latest = {(row["name"], row["step"]): row["submitted_utc"] for row in by_time}
    return [row for row in found if row["submitted_utc"] == latest[row["name"], row["step"]]]


def _other_columns(header: bytes) -> str:
    """Return what is wrong with a file whose header is not `COLUMNS`."""
    if header.startswith(b"step,name,metric,mean,"):
        return "was written by an earlier version of gradewire, without the columns run and submitted_utc"
    return f"has columns other than {', '.join(COLUMNS)}"


def _utc(unix_s: float) -> str:
    """Return a time of `StepScores` in UTC, in a form that sorts by time; "" for an unknown time (0)."""
    return datetime.fromtimestamp(unix_s, UTC).isoformat(timespec="milliseconds") if unix_s else ""


def _lines(rows: Iterable[Mapping[str, object]]) -> bytes:
    text = io.StringIO()
    csv.DictWriter(text, COLUMNS, extrasaction="ignore", lineterminator="\n").writerows(rows)
    return text.getvalue().encode(errors="backslashreplace")


# MLflow accepts no other characters in names.
_OTHER: Final = re.compile(r"[^\w\-. :/]")


class MlflowSink:
    """A sink that logs to an MLflow run. Closing the sink leaves the run active.

    Args:
        run_id: The run's ID; None means the run that is active on this thread.

    Raises:
        MissingExtra: MLflow is not installed.
        InvalidRequest: No `run_id` is given, and no run is active.
    """

    def __init__(self, run_id: str | None = None) -> None:
        with needed_by("MlflowSink", "gradewire[mlflow]"):
            import mlflow  # noqa: PLC0415 - optional and slow to import
            from mlflow.entities import Metric, RunTag  # noqa: PLC0415 - as above
        active = mlflow.active_run()
        self._run_id = run_id or (active and active.info.run_id)
        if not self._run_id:
            raise InvalidRequest("run_id: no MLflow run is active; call mlflow.start_run first, or give a run's ID")
        self._client = mlflow.MlflowClient()
        self._metric, self._tag = Metric, RunTag

    def write(self, scores: StepScores) -> None:
        """Log the scores under their step; set metric identifiers and model digests as the run's tags."""
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
        """Do nothing, because the caller ends the run."""


def _name(written: str) -> str:
    return _OTHER.sub("_", written)


class TensorBoardSink:
    """A sink that writes a TensorBoard event file; each curve's description is the metric's identifier.

    Args:
        log_directory: The training run's log directory, or any folder below TensorBoard's --logdir.

    Raises:
        MissingExtra: TensorBoard is not installed.
    """

    def __init__(self, log_directory: str | os.PathLike[str]) -> None:
        with needed_by("TensorBoardSink", "gradewire[tensorboard]"):
            from tensorboard.summary import Writer  # noqa: PLC0415 - optional
        self._writer = Writer(os.fspath(log_directory))

    def write(self, scores: StepScores) -> None:
        """Add the values of `StepScores.scalars` under their step."""
        for tag, value in scores.scalars().items():
            label = tag.removeprefix(f"{scores.name}/").rpartition("/")[0]
            self._writer.add_scalar(tag, value, scores.step, description=scores.metrics[label].line)
        self._writer.flush()

    def close(self) -> None:
        """Close the event file."""
        self._writer.close()


class WandbSink:
    """A sink that logs to a W&B run. Closing the sink leaves the run open. Charts use `NAME/step` for their x axis.

    W&B drops values whose `step=` is below the last step. The sink therefore logs scores as separate rows without
    `step=`, and each row advances W&B's step counter. If your loop logs with `step=`, pass a separate run here.
    Lightning and Hugging Face log with their own step metric, so they need no separate run.

    Args:
        run: The W&B run; None means the active run.

    Raises:
        MissingExtra: wandb is not installed.
        InvalidRequest: No `run` is given, and no run is active.
    """

    def __init__(self, run: Any = None) -> None:
        with needed_by("WandbSink", "gradewire[wandb]"):
            import wandb  # noqa: PLC0415 - optional and slow to import
        self._run = run or wandb.run
        if self._run is None:
            raise InvalidRequest("run: no W&B run is active; call wandb.init first, or give a run")
        self._names: set[str] = set()

    def write(self, scores: StepScores) -> None:
        """Log the scores as one row; write metric identifiers and model digests to the run's summary."""
        step_name = f"{scores.name}/step"
        if scores.name not in self._names:
            self._names.add(scores.name)
            self._run.define_metric(step_name, hidden=True)
            self._run.define_metric(f"{scores.name}/*", step_metric=step_name)
        self._run.log({step_name: scores.step, **scores.scalars()})
        for label, metric in scores.metrics.items():
            self._run.summary.update({f"{scores.name}/{label}/line": metric.line, f"{label}/digest": metric.digest})

    def close(self) -> None:
        """Do nothing, because the caller finishes the run."""


def available_sinks(directory: str | os.PathLike[str]) -> list[Sink]:
    """Return a CSV sink (`DIRECTORY/scores.csv`), and a sink for each tracker in use.

    W&B and MLflow are in use if they have an active run. TensorBoard (`DIRECTORY/tensorboard`) counts as in use if it
    is installed.
    """
    sinks: list[Sink] = [CsvSink(Path(directory) / "scores.csv")]
    if getattr(sys.modules.get("wandb"), "run", None) is not None:
        sinks.append(WandbSink())
    if (mlflow := sys.modules.get("mlflow")) is not None and mlflow.active_run() is not None:
        sinks.append(MlflowSink())
    if importlib.util.find_spec("tensorboard") is not None:
        sinks.append(TensorBoardSink(Path(directory) / "tensorboard"))
    return sinks
