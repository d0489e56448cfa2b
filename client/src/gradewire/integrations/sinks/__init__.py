"""Where `ValidationScorer` writes scores to: a file for each tracker, imported when it is made."""

from gradewire.integrations.sinks.available import available_sinks
from gradewire.integrations.sinks.csv_file import CsvSink
from gradewire.integrations.sinks.mlflow import MlflowSink
from gradewire.integrations.sinks.tensorboard import TensorBoardSink
from gradewire.integrations.sinks.wandb import WandbSink

__all__ = ["CsvSink", "MlflowSink", "TensorBoardSink", "WandbSink", "available_sinks"]
