"""The file of scores outlasts cut lines and other people's."""

from pathlib import Path
from typing import Any

import pytest

from gradewire import InvalidRequest
from gradewire.integrations.training import spool
from gradewire.integrations.training.spool import ScoreLog, Spool, SpoolLimits
from gradewire.integrations.training.step_file import StepHeader
from gradewire.integrations.training.step_scores import StepMetric, StepScores, StepState


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
    monkeypatch.setattr(spool, "_MOST_KEPT", 3)
    log = ScoreLog(tmp_path / "scores.jsonl")
    for step in range(5):
        log.add(step, scores(step))
    assert list(log.kept()) == [2, 3, 4]
    assert len((tmp_path / "scores.jsonl").read_text().splitlines()) == 5
    assert log.counts == {StepState.SCORED: 5}


_ROW = b'{"prediction": "a"}\n'


def header(step: int) -> StepHeader:
    return StepHeader(step, "validation", 1.0, None)


def test_numbers_go_on_over_openings(tmp_path: Path) -> None:
    spool = Spool(tmp_path, SpoolLimits())
    first, second = spool.add(header(-5), [_ROW]), spool.add(header(5), [_ROW])
    spool.end(second, second.ended(StepState.SCORED, "", 2.0))
    spool.close()
    spool = Spool(tmp_path, SpoolLimits())
    assert list(spool.waiting) == [first.sequence]
    assert spool.waiting[first.sequence].header.step == -5
    assert spool.add(header(6), [_ROW]).sequence == second.sequence + 1
    spool.close()


def test_what_a_killed_writer_left_is_removed_and_files_of_others_are_left_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pending = tmp_path / "pending"
    pending.mkdir()
    for name in (".000000000001-step1.jsonl.partial", "notes.txt"):
        (pending / name).write_text("half")
    spool = Spool(tmp_path, SpoolLimits())
    assert [path.name for path in pending.iterdir()] == ["notes.txt"]
    assert "notes.txt is no step" in caplog.text
    assert spool.waiting == {}
    spool.close()


def test_a_directory_has_one_owner(tmp_path: Path) -> None:
    spool = Spool(tmp_path, SpoolLimits())
    with pytest.raises(InvalidRequest, match="in use by process"):
        Spool(tmp_path, SpoolLimits())
    spool.close()
    Spool(tmp_path, SpoolLimits()).close()


@pytest.mark.parametrize(
    ("settings", "named"),
    [({"max_bytes": 0}, "max_bytes"), ({"max_steps": 1.5}, "max_steps"), ({"when_full": "stop"}, "when_full")],
)
def test_limits_are_checked(settings: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidRequest, match=named):
        SpoolLimits(**settings)
