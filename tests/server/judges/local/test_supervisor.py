"""How long a worker may take."""

import logging
from pathlib import Path

import pytest

from gradewire_models.judges.cores.rows import Row, Run
from gradewire_server.judges.local import supervisor
from gradewire_server.judges.local.supervisor import WorkerLostError, WorkerProcess, run_timeout_s
from gradewire_server.judges.worker.messages import OpenModel
from gradewire_server.settings.judge import EmbeddedJudgeConfig


@pytest.mark.parametrize(("first", "timeout_s"), [(False, 30 + 0.5 * 7), (True, 100 + 30 + 0.5 * 7)])
def test_a_run_may_take_as_long_as_its_tokens_and_the_first_one_reads_the_weights(
    timeout_s: float, *, first: bool
) -> None:
    run = Run(1, (Row(2, (5, 6, 7)), Row(3, (5, 6, 7, 8))))
    config = EmbeddedJudgeConfig(Path(), start_timeout_s=100.0, run_timeout_s=30.0, token_timeout_s=0.5)
    assert run_timeout_s(run, config, first=first) == timeout_s


async def test_the_servers_secrets_are_not_in_the_workers_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "telling.py").write_text("import os\nprint('knows', *sorted(os.environ))\n")
    monkeypatch.setattr(supervisor, "_MODULE", "telling")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("GRADEWIRE_AUTH_TOKENS", "secret")
    caplog.set_level(logging.ERROR)
    with pytest.raises(WorkerLostError):
        await WorkerProcess.start(OpenModel("int8", str(tmp_path), 1, 64, 1, 0), timeout_s=20)
    assert "knows" in caplog.text
    assert "PYTHONPATH" in caplog.text
    assert "GRADEWIRE" not in caplog.text
