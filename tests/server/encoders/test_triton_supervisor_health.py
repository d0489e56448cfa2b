"""When what was seen of a model in Triton is enough to load it anew."""

from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from gradewire_server.encoders import triton_supervisor as triton_repair
from gradewire_server.encoders.prometheus import TritonTelemetry
from gradewire_server.encoders.triton_supervisor import FailureEvidence, ModelHealth, TritonSupervisor
from gradewire_server.settings.engine import TritonConfig
from gradewire_server.triton import Counts, Fault, TritonClient


@pytest.mark.parametrize(
    ("at_s", "enough"),
    [
        ([0.0], False),
        ([0.0, 0.1, 0.2, 0.3], False),  # one hiccup, however many runs it hit
        ([0.0, 3.0], False),
        ([0.0, 1.1, 2.2], True),
        ([0.0, 9.0, 18.0], True),
        ([0.0, 11.0, 22.0, 33.0], False),  # rare ones are each the first
    ],
)
def test_evidence_has_to_go_on(at_s: list[float], *, enough: bool) -> None:
    now_s = 0.0
    evidence = FailureEvidence(lambda: now_s)
    for now_s in at_s:  # noqa: B007 - the clock
        evidence.add()
    assert evidence.lasting is enough
    assert evidence
    now_s += 11.0
    assert not evidence
    assert not evidence.lasting
    evidence.clear()
    assert not evidence


def test_a_model_is_stuck_only_where_nothing_at_all_is_computed() -> None:
    health = ModelHealth()
    for completed in (7, 7, 8, 8, None, 8, 8):
        health.probe_timed_out(completed)
        assert not health.stuck
    assert not health.probe_timed_out(8)
    assert health.stuck
    health.computed()
    assert not health.stuck


def test_a_model_that_is_gone_shows_no_signs() -> None:
    health = ModelHealth()
    health.note(Fault.FAILED)
    assert health.evidence
    health.note(Fault.NOT_READY)
    assert not health.evidence
    assert not health.missing, "somebody may be loading it"


@pytest.mark.parametrize("between", [(), (None,), (None, None)])
@pytest.mark.parametrize("later", [Counts(4, 0), Counts(600, 0), Counts(4, 9)])
def test_a_count_that_falls_ends_all_signs_whatever_was_not_told_in_between(
    later: Counts, between: tuple[None, ...]
) -> None:
    health = ModelHealth()
    health.note(Fault.FAILED)
    for counts in (Counts(500, 3), *between, Counts(503, 4)):
        health.counted(counts)
        assert health.evidence
    health.counted(later)
    assert not health.evidence


MODEL = "tiny-bert"


class Link(TritonClient):
    """A Triton that another replica mends too, at a moment of the test's choice.

    Args:
        counts: Requests answered well and in vain, look by look.
        begun_after: Looks at statistics after which the other replica has begun to unload.
    """

    def __init__(self, *counts: tuple[int, int], begun_after: int = 99) -> None:
        self.asked: list[str] = []
        self._counts = list(counts)
        self._looks_left = begun_after

    async def states(self, model: str) -> frozenset[str]:  # noqa: ARG002 - there is one
        return frozenset({"READY" if self._looks_left > 0 else "UNLOADING"})

    async def counts(self, model: str) -> Counts:  # noqa: ARG002 - there is one
        self._looks_left -= 1
        return Counts(*self._counts.pop(0))

    async def load(self, model: str) -> None:
        self.asked.append(f"load {model}")

    async def unload(self, model: str) -> None:
        self.asked.append(f"unload {model}")


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triton_repair, "_SPREAD_S", 0.0)


def ill_case() -> ModelHealth:
    health = ModelHealth()
    seconds = iter([0.0, 0.0, 0.0, 1.1, 1.1, 2.2, 2.2])
    health.evidence = FailureEvidence(lambda: next(seconds, 2.2))
    for _ in range(3):
        health.evidence.add()
    assert health.evidence.lasting
    health.counted(Counts(500, 3))
    return health


async def mended(link: Link, health: ModelHealth) -> list[str]:
    source: Any = SimpleNamespace(client=link)
    library: Any = None
    telemetry = TritonTelemetry(CollectorRegistry())
    await TritonSupervisor(library, source, TritonConfig("127.0.0.1:1"), telemetry).repair(MODEL, health)
    return link.asked


async def test_an_ill_model_is_loaded_anew() -> None:
    health = ill_case()
    assert await mended(Link((500, 4), (503, 5)), health) == [f"unload {MODEL}", f"load {MODEL}"]
    assert not health.evidence.lasting


@pytest.mark.parametrize("first", [(3, 0), (900, 0)])
async def test_one_that_was_loaded_since_its_last_sign_is_left_alone(first: tuple[int, int]) -> None:
    health = ill_case()
    assert await mended(Link(first, (1000, 0)), health) == [], "no failure where there were 3: it was loaded in between"
    assert not health.evidence.lasting


@pytest.mark.parametrize("second", [(3, 0), (900, 0)])
async def test_one_that_was_loaded_between_two_looks_is_left_alone(second: tuple[int, int]) -> None:
    assert await mended(Link((500, 4), second), ill_case()) == []


@pytest.mark.parametrize("look", [1, 2])
async def test_one_that_another_front_begins_to_unload_is_left_to_it(look: int) -> None:
    assert await mended(Link((500, 4), (503, 5), begun_after=look), ill_case()) == []
