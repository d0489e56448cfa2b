"""Scores of steps in a CSV file."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from tests.client.integrations.conftest import ScorerMaker
from tests.client.small_server import SmallServer

from gradewire import InvalidRequest, MissingExtra
from gradewire.integrations import StepMetric, StepScores, StepState
from gradewire.integrations.training.sinks import CsvSink, MlflowSink, TensorBoardSink, WandbSink, available_sinks


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_scores_of_a_server_are_appended_over_runs(
    small_server: SmallServer, make_scorer: ScorerMaker, rows: list[dict[str, Any]], tmp_path: Path
) -> None:
    for step in (100, 200):
        scorer = make_scorer(small_server.address, "exact_match,rouge_l", sinks=[CsvSink(tmp_path / "a/scores.csv")])
        scorer.submit(step, rows)
        assert scorer.wait(30)
        scorer.close()
    read_rows = read(tmp_path / "a/scores.csv")
    assert [(row["step"], row["metric"]) for row in read_rows] == [
        ("100", "exact_match"),
        ("100", "rouge_l"),
        ("200", "exact_match"),
        ("200", "rouge_l"),
    ]
    assert [float(row["mean"]) for row in read_rows] == pytest.approx([2 / 3] * 4)
    assert all(float(row["mean_low"]) < float(row["mean"]) < float(row["mean_high"]) for row in read_rows)
    assert {(row["scored"], row["items"], row["not_scored_share"]) for row in read_rows} == {("3", "3", "0.0")}
    assert [json.loads(row["counts"]) for row in read_rows] == [{"OK": 3}] * 4
    assert read_rows[0]["line"].startswith("exact_match/1")


def test_odd_labels_and_missing_means_stay_in_their_columns(tmp_path: Path) -> None:
    metric = StepMetric(None, None, 0, 1.0, {"TIMEOUT": 2})
    sink = CsvSink(tmp_path / "scores.csv")
    sink.write(StepScores(3, 'a,"b"\n\ud800', 2, StepState.SCORED, {"smile,\n": metric}))
    sink.close()
    (row,) = read(tmp_path / "scores.csv")
    assert (row["step"], row["metric"], row["mean"], row["not_scored_share"]) == ("3", "smile,\n", "", "1.0")


def test_a_file_of_others_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_text("step,loss\n1,0.5\n")
    with pytest.raises(InvalidRequest, match="columns other than"):
        CsvSink(path)
    assert path.read_text() == "step,loss\n1,0.5\n"


@pytest.mark.parametrize(
    ("make", "extra"), [(lambda: TensorBoardSink("x"), "tensorboard"), (WandbSink, "wandb"), (MlflowSink, "mlflow")]
)
def test_a_missing_library_is_named_with_what_installs_it(make: Any, extra: str) -> None:
    with pytest.raises(MissingExtra, match=rf"pip install 'gradewire\[{extra}\]'"):
        make()


def test_without_trackers_there_is_csv(tmp_path: Path) -> None:
    (sink,) = available_sinks(tmp_path)
    assert isinstance(sink, CsvSink)


class _Broken:
    def __init__(self) -> None:
        self.steps: list[int] = []
        self.closed = False

    def write(self, scores: StepScores) -> None:
        self.steps.append(scores.step)
        raise RuntimeError("the tracker is away")

    def close(self) -> None:
        self.closed = True
        raise RuntimeError("the tracker is away")


def test_a_sink_that_fails_is_logged_and_ends_nothing(
    small_server: SmallServer,
    make_scorer: ScorerMaker,
    rows: list[dict[str, Any]],
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
) -> None:
    broken = _Broken()
    scorer = make_scorer(small_server.address, sinks=[broken, CsvSink(tmp_path / "scores.csv")])
    scorer.submit(1, rows)
    scorer.submit(2, rows)
    assert scorer.wait(30)
    assert scorer.close()
    assert (broken.steps, broken.closed) == ([1, 2], True)
    assert "_Broken failed on step 2 of validation" in caplog.text
    assert "_Broken could not be closed" in caplog.text
    assert scorer.counts() == {StepState.SCORED: 2}
    assert len((tmp_path / "scores.csv").read_text().splitlines()) == 3
