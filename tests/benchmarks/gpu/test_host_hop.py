"""The hop to a shared encoder process is measured between two real processes."""

import pytest
from benchmarks.gpu import host_hop


def test_the_table_has_both_processes_for_each_size(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["host_hop", "--texts", "1", "64", "--calls", "40"])
    host_hop.main()
    lines = [line.split("|") for line in capsys.readouterr().out.splitlines() if line.startswith("| ")][1:]
    assert [int(cells[1]) for cells in lines] == [1, 64]
    for cells in lines:
        assert all(float(cell) > 0 for cell in cells[2:5])
