"""A lazy attribute is computed at the first access, and threads see one value."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Barrier

from gradewire_server.metrics.text.lazy import lazy

_THREADS = 8


@dataclass(frozen=True)
class _Text:
    raw: str
    calls: list[str] = field(default_factory=list)
    barrier: Barrier | None = None

    @lazy
    def words(self) -> list[str]:
        """Words."""
        self.calls.append(self.raw)
        if self.barrier is not None:
            self.barrier.wait(timeout=30)  # all threads compute it at the same time
        return self.raw.split()


def test_it_is_computed_once_for_each_object() -> None:
    one, other = _Text("a b"), _Text("c")
    assert one.words is one.words
    assert (one.words, other.words) == (["a", "b"], ["c"])
    assert one.calls == ["a b"]


def test_the_class_shows_the_documented_attribute() -> None:
    assert _Text.words.__doc__ == "Words."


def test_threads_that_compute_it_at_the_same_time_get_one_value() -> None:
    text = _Text("a b", barrier=Barrier(_THREADS))
    with ThreadPoolExecutor(_THREADS) as pool:
        found = [each.result() for each in [pool.submit(lambda: text.words) for _ in range(_THREADS)]]
    assert len(text.calls) == _THREADS
    assert all(each is found[0] for each in found)
