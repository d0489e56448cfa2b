"""A run whose client was the bottleneck is made again with more client processes."""

from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
from benchmarks.load import knees


def _document(*, client_limited: bool, over: str = "misses") -> dict[str, Any]:
    steps = [{"over_knee": False, "outcome": "void"}, {"over_knee": True, "outcome": over}]
    return {"knee": {"client_limited": client_limited}, "steps": steps}


@pytest.mark.parametrize(
    ("documents", "asked"),
    [
        ([_document(client_limited=False)], [2]),
        ([_document(client_limited=True), _document(client_limited=False)], [2, 4]),
        ([_document(client_limited=False, over="void")] * 2, [2, 4]),
    ],
)
def test_more_client_processes_where_they_were_late(
    documents: list[dict[str, Any]], asked: list[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    given: list[int] = []
    left = iter(documents)

    def measure_with(processes: int, *_: object) -> dict[str, Any]:
        given.append(processes)
        return next(left)

    monkeypatch.setattr(knees, "measure_with", measure_with)
    assert knees.measure("embedded", "short", Namespace(client_processes=2, out=tmp_path)) is documents[-1]
    assert given == asked
