"""What one of several server processes does with the settings that it is given."""

import json
from pathlib import Path

import pytest

from gradewire_server.processes.child import Position, StartMessage
from gradewire_server.server_child import _with_shared_judge
from gradewire_server.settings.gpus import GpuShare
from gradewire_server.settings.server import Settings
from gradewire_server.settings.setting import SettingsError


def _place(directory: Path, *, judge_host: bool) -> Position:
    return Position(0, 2, 50051, directory, judge_host=judge_host)


def test_judges_of_this_machine_are_those_of_the_host(tmp_path: Path) -> None:
    settings = Settings.load_share(2, disk_directory=tmp_path, judge_backend="embedded")
    given = _with_shared_judge(settings, _place(tmp_path, judge_host=True))
    assert given.engine.judge.host == f"unix:{tmp_path / 'judges'}"
    assert given.engine.judge.embedded == settings.engine.judge.embedded
    without = Settings.load_share(2, disk_directory=tmp_path, judge_backend="none")
    assert _with_shared_judge(without, _place(tmp_path, judge_host=True)) is without


def test_judges_that_were_asked_for_since_the_start_are_refused(tmp_path: Path) -> None:
    settings = Settings.load_share(2, disk_directory=tmp_path, judge_backend="embedded")
    with pytest.raises(SettingsError, match="stop the server and start it again"):
        _with_shared_judge(settings, _place(tmp_path, judge_host=False))


def test_processes_share_the_places_of_a_judges_server(tmp_path: Path) -> None:
    remote = {"judge_backend": "openai", "judge_url": "http://127.0.0.1:1/v1", "judge_remote_model": "m"}
    settings = Settings.load_share(2, disk_directory=tmp_path, judge_max_in_flight=5, **remote)
    given = _with_shared_judge(settings, _place(tmp_path, judge_host=False)).engine.judge.remote
    assert given is not None
    assert (given.max_in_flight, given.processes, given.places_file) == (5, 2, tmp_path / "judge-places")


def test_a_process_uses_the_gpu_of_its_position(tmp_path: Path) -> None:
    message = StartMessage(Position(1, 4, 0, tmp_path, device="cuda:1", device_processes=2), {"device": "cuda"})
    position = Position(**{**json.loads(message.encode())["position"], "directory": tmp_path})
    assert position.gpu == GpuShare("cuda:1", 2)
    settings = Settings.load_share(position.count, position.gpu, disk_directory=tmp_path, device="cuda")
    assert settings.engine.gpu.index == 1
    assert _place(tmp_path, judge_host=False).gpu is None
