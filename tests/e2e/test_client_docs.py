"""The examples of docs/reference/client.md run as they stand, one after the other."""

import re
from pathlib import Path
from typing import Any

import pytest
from tests.support.server_process import ServerProcess

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "client.md"


def test_every_example_runs(
    server: ServerProcess,
    minilm: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("GRADEWIRE_MODEL_REPOSITORY", str(minilm))
    monkeypatch.setenv("GRADEWIRE_DISK_DIRECTORY", str(tmp_path))
    page = PAGE.read_text(encoding="utf-8").replace("127.0.0.1:50051", server.address)
    blocks = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    assert len(blocks) == page.count("```python") >= 7
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)  # noqa: S102 - the page is ours
    assert "q1 OK 0." in capsys.readouterr().out
    assert all(future.done() and future.exception() is None for future in names["futures"])
    assert names["right"] > 0
