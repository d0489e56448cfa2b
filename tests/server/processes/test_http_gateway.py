"""The gateway's process: one that lives and does nothing is ended; directories of killed servers go."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from gradewire_server.processes import http_gateway as gateways
from gradewire_server.processes.http_gateway import GatewayProcess, endpoint, gateway_settings, private_directory
from gradewire_server.settings.server import Settings
from gradewire_server.settings.shares import gateway_bytes


async def test_one_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings.load(http_api_port=0)
    with endpoint(settings) as handed:
        gateway = await GatewayProcess.open(handed, gateway_settings(settings, handed.private))
        try:
            os.kill(gateway.pid, signal.SIGSTOP)
            monkeypatch.setattr(gateways, "_SILENT_S", 1.5)  # it beats once a second
            lost = await gateway.lost()
            assert "sent no heartbeat for 1.5 s" in lost
            with pytest.raises(ProcessLookupError):
                os.kill(gateway.pid, 0)
        finally:
            with suppress(ProcessLookupError):
                await gateway.kill()


def test_bounds_stay_within_the_share_of_the_memory() -> None:
    bounds = gateway_settings(Settings.load(http_api_port=0, memory_limit="1GiB"), "unix:x").bounds
    assert bounds.max_body_bytes == gateway_bytes(1 << 30) // 28
    assert bounds.max_bytes_in_flight == gateway_bytes(1 << 30) // 5
    small = gateway_settings(Settings.load(http_api_port=0, memory_limit="1GiB", max_message_bytes="1MiB"), "unix:x")
    assert small.bounds.max_body_bytes == 1 << 20


def test_the_gateway_takes_its_share_from_the_server() -> None:
    alone = Settings.load(memory_limit="1GiB")
    beside = Settings.load(memory_limit="1GiB", http_api_port=0)
    assert alone.memory.limit_bytes == 1 << 30
    assert beside.memory.limit_bytes == (1 << 30) - gateway_bytes(1 << 30)
    assert beside.capacity.max_bytes < alone.capacity.max_bytes


_OWNER = """
import sys, time
from gradewire_server.processes.http_gateway import private_directory
with private_directory() as directory:
    print(directory, flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A directory whose path is short enough for sockets, which pytest's are not after a thousand runs."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def test_directories_of_killed_servers_are_removed_at_the_next_start_and_no_others(
    short_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(short_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    foreign = short_path / "gradewire-foreign"
    foreign.mkdir()
    (short_path / "gradewire-link").symlink_to(foreign)
    owners = [
        subprocess.Popen([sys.executable, "-c", _OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    try:
        made = [Path(owner.stdout.readline().strip()) for owner in owners if owner.stdout is not None]
        assert all(directory.parent == short_path for directory in made)
        owners[0].kill()
        owners[0].wait()
        with private_directory() as own:
            left = {path.name for path in short_path.iterdir()}
            assert left == {own.name, made[1].name, made[2].name, "gradewire-foreign", "gradewire-link"}
            assert own.stat().st_mode & 0o777 == 0o700
        assert owners[1].communicate("\n")[0] == ""
        assert {path.name for path in short_path.iterdir()} == {made[2].name, "gradewire-foreign", "gradewire-link"}
    finally:
        for owner in owners:
            owner.kill()
            owner.communicate()
