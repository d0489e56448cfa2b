"""A model is replaced under a running server: every score belongs to the weights that its reply names."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.servers.triton import TritonServer
from tests.support.servers.triton_traffic import (
    MODEL,
    Replica,
    Weights,
    build_weights,
    copy_model,
    fresh_texts,
    replica,
    traffic,
)

from gradewire_models.repository.built import load_built

pytestmark = pytest.mark.alone


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two repositories with MODEL in two sets of weights; not to be changed."""
    root = tmp_path_factory.mktemp("weights")
    for seed in (1, 2):
        build_weights(root / f"package{seed}", root / f"repository{seed}", seed=seed)
    return root


@pytest.fixture(scope="module")
def both(built: Path) -> tuple[Weights, Weights]:
    old, new = Weights(built / "repository1"), Weights(built / "repository2")
    texts = fresh_texts(0)
    gaps = [abs(old.score(text) - new.score(text)) for text in (next(texts) for _ in range(200))]
    assert sorted(gaps)[len(gaps) // 4] > 0.02, "most texts tell the two apart"
    return old, new


@pytest.fixture
def repository(built: Path, tmp_path: Path) -> Path:
    """One that Triton and gradewire share, with the old weights."""
    copy_model(built / "repository1", tmp_path / "repository")
    return tmp_path / "repository"


@pytest.fixture
def triton(repository: Path, tmp_path: Path) -> Iterator[TritonServer]:
    with TritonServer(tmp_path / "triton", repository) as server:
        yield server


async def until_new(server: Replica, new: Weights, texts: Iterator[str]) -> None:
    async with asyncio.timeout(40):
        while True:
            (outcome,) = await server.ask(next(texts))
            if outcome.score is not None and outcome.digest == new.digest:
                return
            await asyncio.sleep(0.02)


def check_switch(server: Replica, old: Weights, new: Weights) -> None:
    counts = server.check(old, new)
    assert set(counts) == {old.digest, new.digest}
    failures = server.failures()
    assert all(f.status == "UNAVAILABLE" and "try again" in f.message for f in failures), failures
    first_new_s = min(outcome.ended_s for outcome in server.outcomes if outcome.digest == new.digest and outcome.score)
    late = [o for o in server.outcomes if o.digest == old.digest and o.score is not None and o.sent_s > first_new_s + 2]
    assert late == [], "the old one is not asked any more"


async def test_in_place_in_the_same_version_folder(
    tmp_path: Path, built: Path, repository: Path, triton: TritonServer, both: tuple[Weights, Weights]
) -> None:
    texts = fresh_texts(11)
    async with replica(tmp_path, repository, triton.url) as server, traffic(server, texts):
        await asyncio.sleep(1)
        copy_model(built / "repository2", repository)
        await asyncio.sleep(0.5)
        await asyncio.to_thread(triton.load, MODEL)
        await until_new(server, both[1], texts)
        await asyncio.sleep(0.5)
    check_switch(server, *both)


async def test_in_place_and_loaded_before_its_description_is_there(
    tmp_path: Path, built: Path, repository: Path, triton: TritonServer, both: tuple[Weights, Weights]
) -> None:
    # The graph alone: Triton's description still says the old digest, and only the answers themselves tell.
    texts = fresh_texts(12)
    graph = Path(MODEL, "1", "model.onnx")
    async with replica(tmp_path, repository, triton.url, triton_repair=False) as server, traffic(server, texts):
        await asyncio.sleep(1)
        (repository / graph).write_bytes((built / "repository2" / graph).read_bytes())
        await asyncio.to_thread(triton.unload, MODEL)
        await asyncio.to_thread(triton.load, MODEL)
        await server.until_health("NOT_SERVING")
        (refused,) = await server.ask(next(texts))
        assert refused.score is None
        copy_model(built / "repository2", repository)
        await asyncio.to_thread(triton.load, MODEL)
        await until_new(server, both[1], texts)
        await server.until_health("SERVING")
    assert set(server.check(*both)) == {each.digest for each in both}


@pytest.mark.hostile  # make test has it without a server of ours: tests/server/encoders/test_triton_source.py
async def test_into_the_next_version_folder_where_triton_watches(
    tmp_path: Path, repository: Path, both: tuple[Weights, Weights]
) -> None:
    texts = fresh_texts(13)
    with TritonServer(tmp_path / "watching", repository, poll_s=1) as triton:
        async with replica(tmp_path, repository, triton.url) as server, traffic(server, texts):
            await asyncio.sleep(1)
            await asyncio.to_thread(build_weights, tmp_path / "package", repository, seed=2, digest=both[1].digest)
            assert load_built(repository, MODEL).onnx_path.parent.name == "2"
            await until_new(server, both[1], texts)
            await asyncio.sleep(0.5)
        check_switch(server, *both)
        assert triton.statistics(MODEL)["version"] == "2"
