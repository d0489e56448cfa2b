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
from gradewire.integrations.training.sinks import (
    CsvSink,
    MlflowSink,
    TensorBoardSink,
    WandbSink,
    available_sinks,
    read_steps,
)


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
    assert len({row["run"] for row in read_rows}) == 2, "two runs, which nobody named"
    assert [row["step"] for row in read_steps(tmp_path / "a/scores.csv")] == ["200", "200"]


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


METRIC = StepMetric(0.5, None, 2, 0.0, {"OK": 2})


def write_runs(path: Path, *submitted: tuple[str, int, float]) -> Path:
    for run, step, unix_s in submitted:
        scores = StepScores(step, "v", 2, StepState.SCORED, {"smile": METRIC}, submitted_unix_s=unix_s, run=run)
        CsvSink(path).write(scores)
    return path


def test_runs_in_one_file_are_never_mixed(tmp_path: Path) -> None:
    # The last row is a step that the first run left in its spool.
    path = write_runs(tmp_path / "a.csv", ("a", 1, 1e9), ("a", 2, 1e9 + 1), ("b", 1, 1e9 + 1.5), ("a", 3, 1e9 + 1.25))
    assert [(row["run"], row["step"]) for row in read_steps(path)] == [("b", "1")]
    assert [row["step"] for row in read_steps(path, "a")] == ["1", "2", "3"]
    assert read_steps(path)[0]["submitted_utc"] == "2001-09-09T01:46:41.500+00:00"
    with pytest.raises(InvalidRequest, match=r"no such run\. Choose one of a, b"):
        read_steps(path, "c")
    CsvSink(tmp_path / "empty.csv")
    assert read_steps(tmp_path / "empty.csv") == []


def test_a_step_that_a_resumed_run_submits_again_is_read_once(tmp_path: Path) -> None:
    path = write_runs(tmp_path / "a.csv", ("a", 1, 1e9), ("a", 2, 1e9 + 1), ("a", 2, 1e9 + 9), ("a", 3, 1e9 + 10))
    assert [(row["step"], row["submitted_utc"][14:19]) for row in read_steps(path)] == [
        *(("1", "46:40"), ("2", "46:49"), ("3", "46:50")),
    ]


@pytest.mark.parametrize("use", [CsvSink, read_steps])
def test_a_file_without_runs_is_refused_with_the_reason(tmp_path: Path, use: Any) -> None:
    path = tmp_path / "scores.csv"
    path.write_text("step,name,metric,mean,share_right,items,scored,not_scored_share,counts,line,digest\n1,v,smile,1\n")
    with pytest.raises(
        InvalidRequest, match="by an earlier version of gradewire, without the columns run and submitted"
    ):
        use(path)
    path.write_text("")
    if use is read_steps:
        with pytest.raises(InvalidRequest, match="has no column run"):
            use(path)
