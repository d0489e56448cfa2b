"""The parts of benchmarks/gpu.sh that need neither a GPU nor minutes."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks.gpu.flops import MINILM, token_flops
from benchmarks.gpu.machine import Machine
from benchmarks.gpu.run import report, table
from benchmarks.gpu.steps import NotRunError, Row, Steps, run_step

from gradewire_server.encoders.local.cuda.device import Gpu

WITHOUT = Machine(2, "3.11", "1.31", "", (), Gpu(None, "there is no GPU"))


def test_operations_are_counted_from_the_shape() -> None:
    # By hand: 6 layers x 2 x (4 x 384 x 384 + 2 x 384 x 1536 + 2 x 8 x 384).
    assert token_flops(MINILM, 8) == 12 * (589_824 + 1_179_648 + 6_144)


@pytest.mark.parametrize(
    ("name", "peak"),
    [
        ("NVIDIA H100 80GB HBM3, 580.1, 81559 MiB", 989e12),
        ("NVIDIA H100 PCIe", 756e12),
        ("NVIDIA L40, 580.1, 46068 MiB", 181e12),
        ("NVIDIA L4, 580.1, 23034 MiB", 121e12),
        ("", 0.0),
    ],
)
def test_the_peak_is_the_cards(name: str, peak: float) -> None:
    assert replace(WITHOUT, gpu_name=name).peak_flops == peak


def test_a_step_keeps_its_rows_and_its_failure_to_itself() -> None:
    def broken() -> Iterator[Row]:
        yield {"a": 1}
        raise ValueError("torn\nin two")

    def absent() -> Iterator[Row]:
        raise NotRunError("no judge fits")
        yield {}

    assert run_step(broken) == ([{"a": 1}], "failed: ValueError: torn in two")
    assert run_step(absent) == ([], "not run: no judge fits")


def test_without_a_gpu_its_steps_say_why_and_the_report_has_them(minilm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.gpu.steps.CPU_SHAPES", ((1, 8),))
    steps = Steps(WITHOUT, minilm, ("all-MiniLM-L6-v2", "all-MiniLM-L6-v2"), 0.01).all()
    results = {title: (*run_step(step), 0.0) for title, step in steps.items() if "gRPC, on the CPU" not in title}
    whys = [why for _, why, _ in results.values()]
    assert whys.count("not run: there is no GPU") == 3
    text = report(WITHOUT, results)
    assert "| texts | tokens each | tokens/s | TFLOP/s |" in text
    assert "not usable: there is no GPU" in text
    assert table([{"a": 0.5, "b": 2}]) == ["| a | b |", "| --- | --- |", "| 0.5 | 2 |"]
