"""Sinks where their libraries are not installed, and sinks that fail."""

from pathlib import Path
from typing import Any

import pytest
from tests.client.integrations.conftest import ScorerMaker
from tests.client.small_server import SmallServer

from gradewire import MissingExtra
from gradewire.integrations import StepScores, StepState
from gradewire.integrations.sinks import CsvSink, MlflowSink, TensorBoardSink, WandbSink, available_sinks


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
    assert "_Broken failed over step 2 of validation" in caplog.text
    assert "_Broken could not be closed" in caplog.text
    assert scorer.counts() == {StepState.SCORED: 2}
    assert len((tmp_path / "scores.csv").read_text().splitlines()) == 3
