"""Before a model is loaded anew: nobody else is at it, and nobody has done it since it looked ill."""

import pytest
from prometheus_client import CollectorRegistry

from gradewire_server.encoders.triton import repair as triton_repair
from gradewire_server.encoders.triton.health import FailureEvidence, ModelHealth
from gradewire_server.encoders.triton.repair import Repair
from gradewire_server.encoders.triton.telemetry import TritonTelemetry
from gradewire_server.triton.client import TritonClient
from gradewire_server.triton.counts import Counts

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
    await Repair(link, TritonTelemetry(CollectorRegistry()), allowed=True).consider(MODEL, health)
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
