"""The judge host tells the supervisor that it has come up, as server processes do, and so ends the start."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.fakes.server_processes import until

from gradewire_server.gateway.endpoint import private_directory
from gradewire_server.processes.figures import Families
from gradewire_server.processes.judge_host_process import JudgeHostProcess
from gradewire_server.processes.member import Place


async def _no_figures() -> Families:
    return []


@pytest.fixture
def directory() -> Iterator[Path]:
    path = private_directory()
    yield path
    shutil.rmtree(path)


async def test_it_says_that_it_serves(directory: Path, tmp_path: Path) -> None:
    place = Place(2, 2, 0, directory, judge_host=True)
    values = {"judge_backend": "embedded", "disk_directory": str(tmp_path)}
    host = await JudgeHostProcess.start(place, values, _no_figures)
    try:
        assert not host.serves
        await until(lambda: host.serves)
        assert host.ready
    finally:
        await host.stop(20)
