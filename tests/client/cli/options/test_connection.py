"""The client that the connection options make."""

from pathlib import Path
from typing import Any

import pytest

from gradewire.cli.options import connection
from gradewire.cli.options.connection import Connection
from gradewire.testing import StubTransport


@pytest.mark.parametrize(("threads", "settings"), [(None, {}), (3, {"workers": 3, "lone_run_threads": 3})])
def test_an_engine_takes_as_many_threads_as_it_is_given(
    threads: int | None, settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, Any] = {}

    def transport(**values: Any) -> StubTransport:
        given.update(values)
        return StubTransport()

    monkeypatch.setattr(connection, "embedded_transport", transport)
    asked = Connection(server=None, token=None, tls=None, cache_dir=tmp_path, deadline_s=60, engine_threads=threads)
    asked.client()
    assert given == {"max_deadline_s": 600.0, "disk_directory": tmp_path, **settings}
