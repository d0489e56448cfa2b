"""Late scores lie under their own step in what each tracker really wrote."""

import csv
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mlflow
import pytest
import wandb
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tests.client.small_server import SmallServer
from wandb.proto import wandb_internal_pb2

from gradewire import InvalidRequest
from gradewire.integrations import Sink, StepMetric, StepScores, StepState, ValidationScorer
from gradewire.integrations.training.sinks import CsvSink, MlflowSink, TensorBoardSink, WandbSink, available_sinks

MEAN = "validation/smile:fast/mean"
LINE = "smile:v1/1?model=all-MiniLM-L6-v2@925549fa50e8"


def scores(step: int, mean: float | None) -> StepScores:
    metric = StepMetric(mean, None, 1, 0.5, {"OK": 1, "TIMEOUT": 1}, LINE, "ab" * 32)
    return StepScores(step, "validation", 2, StepState.SCORED, {"smile:fast": metric})


def write_late(sink: Sink) -> None:
    """Step 100 comes after step 200; step 300 has no mean."""
    sink.write(scores(200, 0.5))
    sink.write(scores(100, 0.25))
    sink.write(scores(300, None))
    sink.close()


def curve(directory: Path) -> list[tuple[int, float]]:
    events = EventAccumulator(str(directory)).Reload()
    return [(event.step, event.tensor_proto.float_val[0]) for event in events.Tensors(MEAN)]


def wandb_history(directory: Path) -> tuple[list[dict[str, Any]], dict[str, str], dict[str, str]]:
    """Rows, step metrics by glob, and texts of the summary, from the file that a run wrote."""
    wandb.teardown()  # its process writes on after the run's end, and would outlive the test
    rows: list[dict[str, Any]] = []
    steps: dict[str, str] = {}
    summary: dict[str, str] = {}
    (path,) = directory.glob("wandb/offline-run-*/*.wandb")
    for content in _records(path.read_bytes()):
        record = wandb_internal_pb2.Record.FromString(content)
        if record.HasField("history"):
            rows.append({item.key or "/".join(item.nested_key): item.value_json for item in record.history.item})
        elif record.HasField("metric"):
            steps[record.metric.glob_name or record.metric.name] = record.metric.step_metric
        elif record.HasField("summary"):
            summary |= {item.key or "/".join(item.nested_key): item.value_json for item in record.summary.update}
    return rows, steps, summary


def _records(content: bytes) -> Iterator[bytes]:
    """W&B's file: a header of 7 bytes, then LevelDB's log of blocks of 32 kB."""
    place, whole = 7, b""
    while place < len(content):
        left = 32768 - place % 32768
        if left < 7:
            place += left
            continue
        _, length, kind = struct.unpack_from("<IHB", content, place)
        whole += content[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in {1, 4}:  # a whole record, or the last part of one
            yield whole
            whole = b""


def test_tensorboard(tmp_path: Path) -> None:
    write_late(TensorBoardSink(tmp_path))
    assert curve(tmp_path) == [(200, 0.5), (100, 0.25)]
    events = EventAccumulator(str(tmp_path)).Reload()
    assert [event.step for event in events.Tensors("validation/smile:fast/not_scored")] == [200, 100, 300]
    assert events.SummaryMetadata(MEAN).summary_description == LINE


def test_wandb(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="no W&B run is active"):
        WandbSink()
    with wandb.init(project="training", dir=tmp_path) as run:
        sink = WandbSink()
        run.log({"loss": 1.0, "train/step": 250})
        write_late(sink)
        run.log({"loss": 0.5, "train/step": 251})
    rows, steps, summary = wandb_history(tmp_path)
    assert [(row["validation/step"], row.get(MEAN)) for row in rows if "validation/step" in row] == [
        ("200", "0.5"),
        ("100", "0.25"),
        ("300", None),
    ]
    assert [row["loss"] for row in rows if "loss" in row] == ["1", "0.5"]
    assert steps["validation/*"] == "validation/step"
    assert summary["validation/smile:fast/line"] == f'"{LINE}"'


def test_mlflow(tmp_path: Path) -> None:
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    with pytest.raises(InvalidRequest, match="no MLflow run is active"):
        MlflowSink()
    with mlflow.start_run() as run:
        sink = MlflowSink()
    write_late(sink)
    client = mlflow.MlflowClient()
    history = client.get_metric_history(run.info.run_id, MEAN)
    assert sorted((metric.step, metric.value) for metric in history) == [(100, 0.25), (200, 0.5)]
    assert client.get_run(run.info.run_id).data.tags["validation/smile:fast/line"] == LINE


def test_labels_that_mlflow_refuses_are_rewritten(tmp_path: Path) -> None:
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    with mlflow.start_run() as run:
        metric = StepMetric(0.5, None, 1, 0.0, {"OK": 1})
        MlflowSink().write(StepScores(1, "validation", 1, StepState.SCORED, {"smile?model=a&b": metric}))
    assert "validation/smile_model_a_b/mean" in mlflow.MlflowClient().get_run(run.info.run_id).data.metrics


def test_what_is_there_is_found_and_written_from_the_scorers_thread(small_server: SmallServer, tmp_path: Path) -> None:
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    with wandb.init(project="training", dir=tmp_path), mlflow.start_run() as run:
        sinks = available_sinks(tmp_path)
        assert {type(sink) for sink in sinks} == {CsvSink, WandbSink, MlflowSink, TensorBoardSink}
        directory = tmp_path / "spool"
        with ValidationScorer(small_server.address, "exact_match", directory=directory, sinks=sinks) as scorer:
            scorer.submit(40, [{"references": ["cat"], "prediction": "cat"}])
            assert scorer.wait(30)
    assert mlflow.MlflowClient().get_run(run.info.run_id).data.metrics["validation/exact_match/mean"] == 1.0
    rows, _, _ = wandb_history(tmp_path)
    assert [row["validation/exact_match/mean"] for row in rows] == ["1"]
    events = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert [event.step for event in events.Tensors("validation/exact_match/mean")] == [40]
    with (tmp_path / "scores.csv").open(newline="") as file:
        assert [(row["step"], row["mean"]) for row in csv.DictReader(file)] == [("40", "1.0")]
