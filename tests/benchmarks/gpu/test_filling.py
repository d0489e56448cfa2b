"""The filling of a simulated GPU is measured over a real socket, with single answers beside bulk calls."""

from pathlib import Path

import pytest
from benchmarks.gpu import filling
from benchmarks.gpu.filling import quantiles_ms


def test_the_table_has_a_line_for_each_load(
    minilm: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GRADEWIRE_MODEL_REPOSITORY", str(minilm))
    monkeypatch.setattr("sys.argv", ["filling", "--seconds", "0.5", "--loads", "1", "2"])
    filling.main()
    shown = capsys.readouterr().out
    assert "one server process" in shown
    lines = [line.split("|") for line in shown.splitlines() if line.startswith("| ") and line[2].isdigit()]
    assert [int(cells[1]) for cells in lines] == [1, 2]
    for cells in lines:
        assert float(cells[2].replace(",", "")) > 0
        assert 0 <= float(cells[3]) <= 1
        assert float(cells[4]) > 0
        assert float(cells[5]) > 0


@pytest.mark.parametrize(
    ("waits_s", "shown"),
    [([], "none ended"), ([0.002], "2.0 / 2.0"), ([0.001 * number for number in range(1, 101)], "50.5 / 100.0")],
)
def test_quantiles_are_in_milliseconds(waits_s: list[float], shown: str) -> None:
    assert quantiles_ms(waits_s) == shown
