"""The worker's process as such; its answers are tested with judges."""

import logging
from pathlib import Path

import pytest

from gradewire_server.judges.local import worker_process
from gradewire_server.judges.local.worker_process import WorkerLostError, WorkerProcess
from gradewire_server.judges.worker.messages import OpenModel


async def test_the_servers_secrets_are_not_in_the_workers_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "telling.py").write_text("import os\nprint('knows', *sorted(os.environ))\n")
    monkeypatch.setattr(worker_process, "_MODULE", "telling")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("GRADEWIRE_AUTH_TOKENS", "secret")
    caplog.set_level(logging.ERROR)
    with pytest.raises(WorkerLostError):
        await WorkerProcess.start(OpenModel("int8", str(tmp_path), 1, 64, 1, 0), timeout_s=20)
    assert "knows" in caplog.text
    assert "PYTHONPATH" in caplog.text
    assert "GRADEWIRE" not in caplog.text
