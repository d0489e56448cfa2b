"""A server on a simulated GPU: it scores, computes equal texts once, and ends if it loses the GPU."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from tests.support.servers.server_process import PROGRAM, ServerProcess

from gradewire import AsyncClient, Client, Status

# `-c` imports from the working directory, the root of the checkout.
_FAKE_GPU = """
from benchmarks.gpu.fake_device import install
from gradewire_server.encoders import gpu_watch
gpu_watch.HANGS_S = 1.0
install()
"""
MODEL = "all-MiniLM-L6-v2-fp16-cuda"


class GpuServer(ServerProcess):
    program: ClassVar[str] = _FAKE_GPU + PROGRAM


@pytest.fixture
def gpu_settings(minilm: Path, tmp_path: Path) -> dict[str, Any]:
    return {
        "model_repository": minilm,
        "judge_backend": "none",
        "wordnet_directory": tmp_path / "nowhere",
        "disk_directory": "",
        "device": "cuda",
        "processes": 1,
    }


@pytest.fixture
def gpu_server(tmp_path: Path, gpu_settings: dict[str, Any]) -> Iterator[GpuServer]:
    with GpuServer(tmp_path, **gpu_settings) as server:
        yield server


def items(count: int, words: str) -> list[dict[str, Any]]:
    return [
        {"question": "what is it?", "references": [f"a {words} {number}"], "prediction": f"the {words} is {number}"}
        for number in range(count)
    ]


async def test_equal_texts_of_calls_under_way_are_computed_once(gpu_server: GpuServer) -> None:
    async with AsyncClient(gpu_server.address) as client:
        # Each item in a call of its own, twice, all at the same time.
        each = [[item] for item in items(60, "dog")]
        reports = await asyncio.gather(*(client.score(item, "sbert") for item in each + each))
        samples = gpu_server.samples()
        large = await client.score(items(600, "cat"), ["sbert", "smile"])
    scores = [report[0].scores["sbert"] for report in reports]
    assert {score.status for score in scores} == {Status.OK}
    assert [score.score for score in scores[:60]] == [score.score for score in scores[60:]]
    assert len({score.score for score in scores}) > 30, "the vectors are those of the texts"
    assert samples[f'gradewire_engine_batch_texts_sum{{model="{MODEL}"}}'] == 120
    assert samples['gradewire_engine_texts_total{source="computed"}'] == 120
    assert samples["gradewire_engine_gpu_busy_seconds_total"] > 0
    assert {score.status for item in large for score in item.scores.values()} == {Status.OK}


@pytest.mark.parametrize("fault", ["lost", "hang"])
def test_a_server_that_loses_its_gpu_says_so_and_ends(
    fault: str, tmp_path: Path, gpu_settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "broken"
    monkeypatch.setenv("FAKE_GPU_FAULT", f"{fault}:{broken}")
    with GpuServer(tmp_path, **gpu_settings) as server, Client(server.address) as client:
        (item,) = client.score(items(1, "dog"), "sbert")
        assert item.scores["sbert"].status is Status.OK
        assert server.http("/readyz")[0] == 200
        broken.touch()
        (item,) = client.score(items(1, "cat"), "sbert")
        assert item.scores["sbert"].status is Status.UNAVAILABLE
        assert "GPU was lost" in item.scores["sbert"].message
        assert server.wait(60) == 1
    log = server.log_text()
    assert "GPU 0 is lost" in log
    assert ("unspecified launch failure" if fault == "lost" else "has not ended for") in log
    assert "this process ends, so that another one can replace it" in log
