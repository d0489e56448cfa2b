"""Which trackers there are."""

import importlib.util
import os
import sys
from pathlib import Path

from gradewire.integrations.sinks.csv_file import CsvSink
from gradewire.integrations.sinks.mlflow import MlflowSink
from gradewire.integrations.sinks.tensorboard import TensorBoardSink
from gradewire.integrations.sinks.wandb import WandbSink
from gradewire.integrations.validation.sink import Sink


def available_sinks(directory: str | os.PathLike[str]) -> list[Sink]:
    """A sink for each tracker that is in use, and always CSV (`DIRECTORY/scores.csv`).

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
