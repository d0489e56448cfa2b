"""The file of scores outlasts cut lines and other people's."""

from pathlib import Path

import pytest

from gradewire.integrations.validation import score_log
from gradewire.integrations.validation.score_log import ScoreLog
from gradewire.integrations.validation.step_scores import StepMetric, StepScores, StepState


def scores(step: int) -> StepScores:
    metric = StepMetric(0.5, None, 1, 0.5, {"OK": 1, "TIMEOUT": 1}, "smile:v1/1?…", "ab", "too late")
    return StepScores(step, "validation", 2, StepState.SCORED, {"smile": metric}, "", 1.0, 2.0)


def test_what_is_added_is_there_after_a_restart(tmp_path: Path) -> None:
    log = ScoreLog(tmp_path / "scores.jsonl")
    for step in (1, 2):
        log.add(step, scores(step))
    again = ScoreLog(tmp_path / "scores.jsonl")
    assert again.kept() == log.kept() == {1: scores(1), 2: scores(2)}
    assert (again.last_sequence, again.has(2), again.has(3)) == (2, True, False)
    assert again.counts == {StepState.SCORED: 2}


@pytest.mark.parametrize("tail", [b'{"sequence": 9, "step', b"\xff\xfe", b"[]", b'{"sequence": 9}'])
def test_a_line_that_cannot_be_read_is_named_and_the_next_one_is_whole(
    tmp_path: Path, tail: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "scores.jsonl"
    ScoreLog(path).add(1, scores(1))
    path.write_bytes(path.read_bytes() + tail)
    log = ScoreLog(path)
    assert f"{path}, line 2 cannot be read" in caplog.text
    log.add(2, scores(2))
    assert ScoreLog(path).kept() == {1: scores(1), 2: scores(2)}


def test_memory_keeps_the_newest_and_the_file_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(score_log, "_MOST_KEPT", 3)
    log = ScoreLog(tmp_path / "scores.jsonl")
    for step in range(5):
        log.add(step, scores(step))
    assert list(log.kept()) == [2, 3, 4]
    assert len((tmp_path / "scores.jsonl").read_text().splitlines()) == 5
    assert log.counts == {StepState.SCORED: 5}
