"""The parts of benchmarks/gpu.sh that need neither a GPU nor minutes."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks.gpu.calling import call_for, serving
from benchmarks.gpu.judging import JudgeChoice
from benchmarks.gpu.machine import Machine
from benchmarks.gpu.roofline import CARDS, MINILM, Card, least, token_flops
from benchmarks.gpu.run import report, table
from benchmarks.gpu.steps import Budget, NotRunError, Row, Steps, run_step

from gradewire_models.repository.built import load_built
from gradewire_server.encoders.cuda import Gpu
from gradewire_server.encoders.local import EncoderSession
from gradewire_server.settings.engine import ComputeConfig

MODELS = ("all-MiniLM-L6-v2", "all-MiniLM-L6-v2")
WITHOUT = Machine(2, "3.11", "1.31", "", (), Gpu(None, "there is no GPU"))


def test_operations_are_counted_from_the_shape() -> None:
    # By hand: 6 layers x 2 x (4 x 384 x 384 + 2 x 384 x 1536 + 2 x 8 x 384).
    assert token_flops(MINILM, 8) == 12 * (589_824 + 1_179_648 + 6_144)


@pytest.mark.parametrize(
    ("texts", "tokens", "bound"),
    [(1, 8, "memory"), (256, 64, "compute")],
)
def test_the_roofline_is_of_what_takes_longer(texts: int, tokens: int, bound: str) -> None:
    lower = least(MINILM, texts, tokens, Card(1e15, 4e12))
    # By hand: two bytes for each of 6 x 1 769 472 weights, once, and for 384 numbers of each token.
    assert lower.memory_s == pytest.approx((21_233_664 + 768 * texts * tokens) / 4e12)
    assert lower.compute_s == pytest.approx(texts * tokens * token_flops(MINILM, tokens) / 1e15)
    assert lower.bound == bound
    assert lower.roofline_s == max(lower.compute_s, lower.memory_s)


@pytest.mark.parametrize(
    ("name", "tflops", "gigabytes_per_s"),
    [
        ("NVIDIA H100 80GB HBM3, 580.1, 81559 MiB", 989, 3350),
        ("NVIDIA H100 PCIe", 756, 2000),
        ("NVIDIA H200 NVL, 580.1, 143771 MiB", 835, 4800),
        ("NVIDIA A100-SXM4-80GB", 312, 2039),
        ("NVIDIA A100-PCIE-40GB", 312, 1555),
        ("NVIDIA L40, 580.1, 46068 MiB", 181, 864),
        ("NVIDIA L4, 580.1, 23034 MiB", 121, 300),
        ("Tesla T4", 65, 320),
    ],
)
def test_the_limits_are_the_cards(name: str, tflops: float, gigabytes_per_s: float) -> None:
    machine = replace(WITHOUT, gpu_name=name)
    assert machine.card == Card(tflops * 1e12, gigabytes_per_s * 1e9)
    assert f"{tflops} TFLOP/s in fp16, {gigabytes_per_s} GB/s" in report(machine, {})


@pytest.mark.parametrize("name", ["", "NVIDIA A10G, 580.1, 23028 MiB", "NVIDIA GH200 480GB"])
def test_a_card_that_is_not_known_has_no_limits(name: str) -> None:
    assert replace(WITHOUT, gpu_name=name).card is None
    assert "the card's data sheet: not known" in report(replace(WITHOUT, gpu_name=name), {})


def test_tokens_are_set_against_both_limits_of_the_card(minilm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The CPU's session in the GPU's place.
    monkeypatch.setattr("benchmarks.gpu.steps.GPU_SHAPES", ((1, 8),))
    steps = Steps(replace(WITHOUT, gpu_name="NVIDIA L4"), minilm, MODELS, Budget(0.01, 0), JudgeChoice())
    monkeypatch.setattr(steps, "_on_gpu", lambda **_: EncoderSession(load_built(minilm, MODELS[0]), ComputeConfig()))
    first, second = steps.gpu_tokens()
    assert [first["CUDA graphs"], second["CUDA graphs"]] == [True, False]
    assert first["the roofline is of"] == "memory"
    card = CARDS["L4"]
    lower = least(MINILM, 1, 8, card)
    assert first["share of the card's peak"] == pytest.approx(first["TFLOP/s"] * 1e12 / card.flops)
    assert first["share of the roofline"] == pytest.approx(first["tokens/s"] / 8 * lower.roofline_s, rel=0.1)


def test_a_step_keeps_its_rows_and_its_failure_to_itself() -> None:
    def broken() -> Iterator[Row]:
        yield {"a": 1}
        raise ValueError("torn\nin two")

    def absent() -> Iterator[Row]:
        yield from ()
        raise NotRunError("no judge fits")

    assert run_step(broken) == ([{"a": 1}], "failed: ValueError: torn in two")
    assert run_step(absent) == ([], "not run: no judge fits")


def test_without_a_gpu_its_steps_say_why_and_the_report_has_them(minilm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.gpu.steps.CPU_SHAPES", ((1, 8),))
    steps = Steps(WITHOUT, minilm, MODELS, Budget(0.01, 0), JudgeChoice()).all()
    results = {title: (*run_step(step), 0.0) for title, step in steps.items() if "gRPC, on the CPU" not in title}
    whys = [why for _, why, _ in results.values()]
    assert whys.count("not run: there is no GPU") == 5
    text = report(WITHOUT, results)
    assert "| texts | tokens each | tokens/s | TFLOP/s |" in text
    assert "not usable: there is no GPU" in text
    assert table([{"a": 0.5, "b": 2}]) == ["| a | b |", "| --- | --- |", "| 0.5 | 2 |"]


def test_a_gpu_is_shared_by_server_processes_and_calls(minilm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[Mapping[str, str]] = []

    @contextmanager
    def noted(_: Path, flags: Mapping[str, str]) -> Iterator[str]:
        served.append(flags)
        yield "nowhere"

    def called(address: str, seconds: float, *, callers: int, clients: int) -> Row:
        assert (address, seconds) == ("nowhere", 5)
        return {"callers": callers, "clients": clients}

    monkeypatch.setattr("benchmarks.gpu.steps.serving", noted)
    monkeypatch.setattr("benchmarks.gpu.steps.call_for", called)
    machine = replace(WITHOUT, cores=16, gpu=Gpu(0))
    rows = list(Steps(machine, minilm, MODELS, Budget(10, 0), JudgeChoice()).gpu_serving())
    assert [tuple(row.values()) for row in rows] == [(1, 1, 1), (1, 8, 1), (1, 32, 4), (2, 32, 4), (4, 32, 4)]
    assert [flags["processes"] for flags in served] == ["1", "1", "1", "2", "4"]
    assert {flags["device"] for flags in served} == {"cuda"}


def test_items_go_through_several_servers_and_clients_over_grpc(minilm: Path) -> None:
    with serving(minilm, {"processes": "2", "workers": "2", "device": "cpu"}) as address:
        row = call_for(address, 0.1, callers=4, clients=2, items=4)
    assert (row["calls at a time"], row["client processes"], row["failed"]) == (4, 2, 0)
    assert row["items/s"] > 0


def test_a_server_that_does_not_start_says_why(minilm: Path) -> None:
    with (
        pytest.raises(RuntimeError, match=r"(?s)the server did not start: .*device"),
        serving(minilm, {"device": "abacus"}),
    ):
        pass
