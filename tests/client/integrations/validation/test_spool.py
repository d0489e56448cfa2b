"""The directory of a spool over its openings."""

from pathlib import Path
from typing import Any

import pytest

from gradewire import InvalidRequest
from gradewire.integrations.validation.spool import Spool, SpoolLimits
from gradewire.integrations.validation.step_file import StepHeader
from gradewire.integrations.validation.step_scores import StepState

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
