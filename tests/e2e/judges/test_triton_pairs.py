"""Comparisons by a judge on Triton's vLLM backend: the real tritonserver, its emulated backend, SmolLM2."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.judges.vllm_repository import vllm_repository
from tests.support.servers.server_process import ServerProcess
from tests.support.servers.triton import TritonServer

from gradewire import Client, Compare, Pair, Status

MODEL = "smollm2"
# Of few words: the backend reads 256 tokens.
PROMPT = """
format = 1
name = "short"
version = 1
metric = "compare"
item = \"\"\"
Question: {question}
A: {first}
B: {second}\"\"\"
[variants.verdict]
system = "Which answer is better? Say A, B or tie."
[[variants.verdict.steps]]
name = "winner"
opening = "Better:"
labels = { "A" = 1, "B" = 0, "tie" = 0.5 }
"""
PAIR = Pair("Capital of France?", "It is Paris.", "Rome")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, minilm: Path) -> Iterator[ServerProcess]:
    directory = tmp_path_factory.mktemp("vllm")
    with TritonServer(directory / "state", vllm_repository(directory, MODEL)) as vllm:
        settings = {
            "model_repository": minilm,
            "judge_backend": "triton",
            "judge_url": vllm.url,
            "judge_remote_model": MODEL,
        }
        with ServerProcess(tmp_path_factory.mktemp("comparing"), **settings) as process:
            yield process


def test_pairs_are_read_in_both_orders_and_kept(server: ServerProcess) -> None:
    with Client(server.address) as client:
        (found,) = client.compare([PAIR], Compare(prompt=PROMPT))
        (swapped,) = client.compare([Pair(PAIR.question, PAIR.answer_b, PAIR.answer_a)], Compare(prompt=PROMPT))
    assert found.status in {Status.OK, Status.INCONSISTENT}, found.message
    assert [order.first for order in found.orders] == ["a", "b"]
    assert found.probability_a is not None
    assert found.probability_b is not None
    assert found.probability_tie is not None
    assert found.probability_a + found.probability_b + found.probability_tie == pytest.approx(1)
    assert swapped.cache_hits.computed == 0
    assert swapped.probability_b == pytest.approx(found.probability_a)
