"""The parts of benchmarks/gpu.sh that need neither a GPU nor minutes."""

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks.gpu import encoder_steps, machine, serving_steps
from benchmarks.gpu.calling import call_for, items_of, latencies_s, score_twice, scores_of, serving
from benchmarks.gpu.judging import JudgeChoice
from benchmarks.gpu.machine import DRAWN, EVOUNA, Bench, Machine
from benchmarks.gpu.report import facts
from benchmarks.gpu.roofline import CARDS, MINILM, Card, least, token_flops
from benchmarks.gpu.step_processes import NotRunError, Row
from benchmarks.gpu.steps import RUN_S, steps_for

from gradewire_models.repository.built import load_built
from gradewire_server.encoders.cuda import Gpu

ROOT = Path(__file__).parents[3]
WITHOUT = Machine(2, "3.11", "1.31", "", (), Gpu(None, "there is no GPU"))


def bench(repository: Path, *, of: Machine = WITHOUT, rehearsal: bool = False, seconds: float = 0.01) -> Bench:
    """Conditions for MiniLM, on the CPU also in the GPU's place, without labelled rows."""
    built = load_built(repository, "all-MiniLM-L6-v2")
    ends_s, nowhere = time.monotonic() + 300, repository / "nowhere"
    return Bench(of, repository, built, built, seconds, ends_s, rehearsal, nowhere, nowhere)


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
    named = replace(WITHOUT, gpu_name=name)
    assert named.card == Card(tflops * 1e12, gigabytes_per_s * 1e9)
    assert facts(named)["the card's data sheet"] == f"{tflops} TFLOP/s in fp16, {gigabytes_per_s} GB/s"


@pytest.mark.parametrize("name", ["", "NVIDIA A10G, 580.1, 23028 MiB", "NVIDIA GH200 480GB"])
def test_a_card_that_is_not_known_has_no_limits(name: str) -> None:
    assert replace(WITHOUT, gpu_name=name).card is None
    assert facts(replace(WITHOUT, gpu_name=name))["the card's data sheet"] == "not known"


def test_tokens_are_set_against_both_limits_of_the_card(minilm: Path) -> None:
    rows = list(encoder_steps.gpu_tokens(bench(minilm, of=replace(WITHOUT, gpu_name="NVIDIA L4"), rehearsal=True)))
    assert [row["CUDA graphs"] for row in rows] == [True, True, False, False]
    first = rows[0]
    assert first["the roofline is of"] == "memory"
    card = CARDS["L4"]
    lower = least(MINILM, 1, 8, card)
    assert first["share of the card's peak"] == pytest.approx(first["TFLOP/s"] * 1e12 / card.flops)
    assert first["share of the roofline"] == pytest.approx(first["tokens/s"] / 8 * lower.roofline_s, rel=0.1)


def test_parity_of_a_device_with_itself_is_exact(minilm: Path) -> None:
    (row,) = encoder_steps.parity(bench(minilm, rehearsal=True))
    assert row["least cosine to the CPU's"] == pytest.approx(1)
    assert row["largest change of a component, alone against in a batch"] < 1e-5


def test_without_a_gpu_its_steps_say_why(minilm: Path) -> None:
    without = bench(minilm)
    on_cpu = {"cpu-tokens", "cpu-sbert", "cpu-smile", "lave"}
    for step in steps_for(JudgeChoice()):
        if step.name not in on_cpu:
            with pytest.raises(NotRunError, match="there is no GPU"):
                list(step.run(without))


def test_budgets_fit_into_nine_minutes() -> None:
    budgets = [step.budget_s for step in steps_for(JudgeChoice())]
    assert sum(budgets) <= RUN_S < 540 - 20
    assert min(budgets) > 10  # more than a step's grace


def test_the_page_has_every_step_and_its_budget() -> None:
    page = (ROOT / "docs" / "operate" / "triton-and-gpu.md").read_text("utf-8")
    written: dict[str, int] = {}
    for names, seconds in re.findall(r"^\| (`[a-z-]+`(?:, `[a-z-]+`)*) \| .* \| ([\d, ]+) \|$", page, re.MULTILINE):
        written |= zip(re.findall(r"`([a-z-]+)`", names), map(int, seconds.split(", ")), strict=True)
    assert written == {step.name: step.budget_s for step in steps_for(JudgeChoice())}


def test_a_gpu_is_shared_by_server_processes_and_calls(minilm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[Mapping[str, str]] = []

    @contextmanager
    def noted(_: Path, flags: Mapping[str, str], *, start_s: float) -> Iterator[str]:
        assert 0 < start_s <= 120
        served.append(flags)
        yield "nowhere"

    def called(address: str, seconds: float, *, callers: int, clients: int, items: int, seed: str) -> Row:
        assert (address, seconds, items) == ("nowhere", 0.01, 256)
        seeds.add(seed)
        return {"callers": callers, "clients": clients}

    seeds: set[str] = set()
    monkeypatch.setattr(machine, "serving", noted)
    monkeypatch.setattr(serving_steps, "call_for", called)
    rows = list(serving_steps.sbert(bench(minilm, of=replace(WITHOUT, cores=16, gpu=Gpu(1)))))
    assert [tuple(row.values()) for row in rows] == [
        (1, 1, 1),
        (1, 8, 1),
        (1, 32, 4),
        (2, 32, 4),
        (4, 32, 4),
        (8, 64, 4),
    ]
    assert [flags["processes"] for flags in served] == ["1", "2", "4", "8"]
    assert {flags["device"] for flags in served} == {"cuda:1"}
    assert len(seeds) == 4  # calls to one server never repeat an answer


def test_rows_are_labelled_ones_in_random_order_or_drawn(minilm: Path, tmp_path: Path) -> None:
    source, rows = bench(minilm).rows(3)
    assert (source, len(rows)) == (DRAWN, 3)
    file = tmp_path / "rows.jsonl"
    file.write_text(
        "".join(f'{{"question": "{n}", "references": [], "prediction": "", "label": 1}}\n' for n in range(50))
    )
    source, rows = replace(bench(minilm), rows_file=file).rows(40)
    assert source == EVOUNA
    assert len({row["question"] for row in rows}) == 40
    assert [row["question"] for row in rows] != sorted((row["question"] for row in rows), key=int)
    assert rows[0].keys() == {"question", "references", "prediction"}


def test_items_and_rows_go_through_several_servers_and_clients_over_grpc(minilm: Path) -> None:
    rows = items_of("some", 6)
    with serving(minilm, {"processes": "2", "workers": "2", "device": "cpu"}) as address:
        called = call_for(address, 0.1, callers=4, clients=2, items=4)
        passes = score_twice(address, rows, "smile", clients=2)
        scores = scores_of(address, rows, "smile")
        taken_s = latencies_s(address, rows[:3], "smile")
        with pytest.raises(RuntimeError, match="1 rows have no score: "):
            scores_of(address, [*rows, {"question": "?", "references": [], "prediction": "yes"}], "smile")
    assert (called["calls at a time"], called["client processes"], called["failed"]) == (4, 2, 0)
    assert called["items/s"] > 0
    assert (passes["client processes"], passes["failed"]) == (2, 0)
    assert passes["cold rows/s"] > 0
    assert passes["warm rows/s"] > 0
    assert len(scores) == 6
    assert len(taken_s) == 3
    assert min(taken_s) > 0


def test_another_load_sends_answers_that_the_server_has_not_seen() -> None:
    seen = {item["prediction"] for seed in ("1 calls 0", "8 calls 0") for item in items_of(seed, 50)}
    assert len(seen) == 100


def test_a_server_that_does_not_start_says_why(minilm: Path) -> None:
    with (
        pytest.raises(RuntimeError, match=r"(?s)the server did not start: .*device"),
        serving(minilm, {"device": "abacus"}),
    ):
        pass
