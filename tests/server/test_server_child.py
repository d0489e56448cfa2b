"""What one of several server processes does with the settings that it is given."""

from pathlib import Path

import pytest

from gradewire_server.processes.child import Position
from gradewire_server.server_child import _with_judge_host
from gradewire_server.settings.server import Settings
from gradewire_server.settings.setting import SettingsError


def _place(directory: Path, *, judge_host: bool) -> Position:
    return Position(0, 2, 50051, directory, judge_host=judge_host)


def test_judges_of_this_machine_are_those_of_the_host(tmp_path: Path) -> None:
    settings = Settings.load_share(2, disk_directory=tmp_path, judge_backend="embedded")
    given = _with_judge_host(settings, _place(tmp_path, judge_host=True))
    assert given.engine.judge.host == f"unix:{tmp_path / 'judges'}"
    assert given.engine.judge.embedded == settings.engine.judge.embedded
    without = Settings.load_share(2, disk_directory=tmp_path, judge_backend="none")
    assert _with_judge_host(without, _place(tmp_path, judge_host=True)) is without


def test_judges_that_were_asked_for_since_the_start_are_refused(tmp_path: Path) -> None:
    settings = Settings.load_share(2, disk_directory=tmp_path, judge_backend="embedded")
    with pytest.raises(SettingsError, match="stop the server and start it again"):
        _with_judge_host(settings, _place(tmp_path, judge_host=False))
