"""A grader in the engine: the same logit alone, in any batch, cold, from memory, from disk and from Redis."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry
from tests.support.examples import example_count
from tests.support.models.grader_adapter import build_tiny_grader
from tests.support.servers.valkey import ValkeyServer

from gradewire_models.repository.built import load_built
from gradewire_server.backends import Backends
from gradewire_server.domain.items import Failure, Status
from gradewire_server.domain.needs import AnswerSource, GradedTexts
from gradewire_server.domain.ports import GradeReply
from gradewire_server.settings.engine import CacheConfig, ComputeConfig, DiskConfig, EngineConfig, RedisConfig

SAME = 2e-4
NAME = "tiny-grader"
ITEMS: list[GradedTexts] = [
    ("w1 w2", "w3", "w3"),
    ("w1 w2", "w3", "w4 w5"),
    ("", "w3", "w3"),
    ("w1", "w2 w3", ""),
    ("w3", "w1 w2", "w3"),
    ("w9 " * 100, "w8 " * 100, "w7 " * 30),
    ("w1", "w2", "w5 w6 w7 " * 100),
    ("w1", "w2", "w5 w6 w7 w8 " * 900),
    *((f"w{n}", f"w{n + 1}", f"w{n + 2} " * n) for n in range(1, 30)),
]


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_tiny_grader(tmp_path_factory.mktemp("grader"), temperature=1.5)


@asynccontextmanager
async def opened(repository: Path, **config: Any) -> AsyncIterator[Backends]:
    backends = await Backends.open(EngineConfig(repository, **config), CollectorRegistry())
    try:
        yield backends
    finally:
        await backends.close()


async def graded(repository: Path, items: list[GradedTexts], **config: Any) -> GradeReply:
    async with opened(repository, **config) as backends:
        return await backends.ports.graders.grade(NAME, items)


def sources(reply: GradeReply) -> set[AnswerSource]:
    return {AnswerSource(number) for number in reply.sources}


async def test_alone_in_a_batch_cold_and_warm_are_the_same(repository: Path) -> None:
    async with opened(repository) as backends:
        cold = await backends.ports.graders.grade(NAME, ITEMS)
        warm = await backends.ports.graders.grade(NAME, ITEMS)
    assert (sources(cold), sources(warm)) == ({AnswerSource.COMPUTED}, {AnswerSource.MEMORY})
    assert cold.logits.tobytes() == warm.logits.tobytes()
    assert len(set(np.round(cold.logits, 3).tolist())) == len(ITEMS)  # so that a mixed-up row would show
    async with opened(repository, compute=ComputeConfig(workers=1, max_batch_texts=1)) as backends:
        alone = [await backends.ports.graders.grade(NAME, [item]) for item in reversed(ITEMS)]
    found = np.concatenate([reply.logits for reply in reversed(alone)])
    assert np.abs(found - cold.logits).max() < SAME
    assert [reply.pieces[0] for reply in reversed(alone)] == cold.pieces.tolist()
    assert cold.pieces[5:8].tolist() == [1, 2, 8]
    assert cold.truncated.tolist() == [number in {5, 7} for number in range(len(ITEMS))]


async def test_the_highest_piece_counts(repository: Path) -> None:
    question, reference, answer = ITEMS[6]
    words = answer.split()
    room = 256 - 4 - 2
    parts = [" ".join(words[start : start + room]) for start in range(0, len(words) - room // 2, room // 2)]
    reply = await graded(repository, [(question, reference, answer), *((question, reference, part) for part in parts)])
    assert reply.pieces.tolist() == [2, 1, 1]
    assert reply.logits[0] == pytest.approx(reply.logits[1:].max(), abs=SAME)


async def test_what_is_stored_on_disk_is_not_computed_again(repository: Path, tmp_path: Path) -> None:
    store = CacheConfig(disk=DiskConfig(directory=tmp_path / "store"))
    cold, later = [await graded(repository, ITEMS, cache=store) for _ in range(2)]
    assert sources(later) == {AnswerSource.DISK}
    assert cold.logits.tobytes() == later.logits.tobytes()
    assert cold.truncated.tolist() == later.truncated.tolist()
    assert cold.pieces.tolist() == later.pieces.tolist()


async def test_what_is_in_redis_is_not_computed_again(repository: Path, valkey: ValkeyServer) -> None:
    store = CacheConfig(redis=RedisConfig(url=valkey.url, timeout_s=5))
    cold, later = [await graded(repository, ITEMS, cache=store) for _ in range(2)]
    assert sources(later) == {AnswerSource.REDIS}
    assert cold.logits.tobytes() == later.logits.tobytes()
    assert cold.pieces.tolist() == later.pieces.tolist()


async def test_equal_items_under_way_are_computed_once(repository: Path) -> None:
    async with opened(repository) as backends:
        calls = [backends.ports.graders.grade(NAME, ITEMS[:4]) for _ in range(5)]
        replies = await asyncio.gather(*calls)
        other = await backends.ports.within("tenant").graders.grade(NAME, ITEMS[:4])
    computed = [source for reply in replies for source in reply.sources if source == AnswerSource.COMPUTED]
    assert len(computed) == 4
    assert len({reply.logits.tobytes() for reply in replies}) == 1
    assert sources(other) == {AnswerSource.COMPUTED}  # what another tenant asked for is not found


async def test_a_deadline_that_has_passed_is_a_timeout_and_harms_nobody(repository: Path) -> None:
    async with opened(repository) as backends:
        grade: Callable[..., Any] = backends.ports.graders.grade
        late, good = await asyncio.gather(grade(NAME, ITEMS[:3], deadline_s=0.0), grade(NAME, ITEMS[2:5]))
    assert {failure.status for failure in late.failures.values()} == {Status.TIMEOUT}
    assert not good.failures


async def test_other_weights_have_other_entries(repository: Path, tmp_path: Path) -> None:
    other = build_tiny_grader(tmp_path, seed=1)
    store = CacheConfig(disk=DiskConfig(directory=tmp_path / "store"))
    first = await graded(repository, ITEMS[:3], cache=store)
    second = await graded(other, ITEMS[:3], cache=store)
    assert sources(second) == {AnswerSource.COMPUTED}
    assert np.abs(first.logits - second.logits).min() > SAME


async def test_a_grader_that_is_not_built_says_so(tmp_path: Path) -> None:
    reply = await graded(tmp_path, ITEMS[:2])
    assert {failure.status for failure in reply.failures.values()} == {Status.MODEL_UNAVAILABLE}
    assert sorted(reply.failures) == [0, 1]


async def test_encoders_and_graders_are_told_apart(repository: Path) -> None:
    async with opened(repository, default_model="all-MiniLM-L6-v2") as backends:
        ports = backends.ports
        refused = ports.encoders.status(NAME)
        grader = ports.grader_models.status(NAME)
        listed = {status.name: status for status in ports.grader_models.statuses()}
        assert NAME not in {status.name for status in ports.encoders.statuses()}
    assert isinstance(refused, Failure)
    assert refused.message.startswith("model tiny-grader is a grader, which reads question, reference and answer")
    assert not isinstance(grader, Failure)
    assert (grader.kind, grader.dims, grader.metadata.temperature) == ("grader", 1, 1.5)
    assert listed[NAME].digest == load_built(repository, NAME).digest


@settings(max_examples=example_count(10), deadline=None)
@given(
    st.lists(
        st.tuples(*[st.lists(st.sampled_from(["w1", "w2", "[SEP]", "[CLS]"]), max_size=90).map(" ".join)] * 3),
        min_size=1,
        max_size=12,
        unique=True,
    )
)
def test_any_batch_gives_what_each_item_gives_alone(repository: Path, items: list[GradedTexts]) -> None:
    async def both() -> tuple[GradeReply, list[GradeReply]]:
        # Without memory between the two.
        together = await graded(repository, items)
        async with opened(repository) as backends:
            return together, [await backends.ports.graders.grade(NAME, [item]) for item in items]

    together, alone = asyncio.run(both())
    assert np.abs(together.logits - np.concatenate([each.logits for each in alone])).max() < SAME
