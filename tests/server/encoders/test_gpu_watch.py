"""One thread runs everything on a GPU: urgent work first, and an end for work that would never end."""

import gc
import threading
import weakref
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import example_count

from gradewire_server.domain.items import Status
from gradewire_server.encoders import gpu_watch
from gradewire_server.encoders.gpu_watch import GpuLostError, GpuThread, gpu_thread, lost_gpu


@pytest.fixture
def gate() -> threading.Event:
    return threading.Event()


def held(thread: GpuThread, gate: threading.Event) -> None:
    """Makes the thread wait for the gate, so that work queues behind."""
    started = threading.Event()
    thread.submit(lambda: (started.set(), gate.wait(10)))
    assert started.wait(10)


@settings(max_examples=example_count(50), deadline=None)
@given(st.lists(st.booleans(), max_size=40))
def test_all_work_is_done_once_and_each_kind_in_order(urgent: list[bool]) -> None:
    thread, gate, done = GpuThread("GPU 7", hangs_s=20.0), threading.Event(), list[int]()
    held(thread, gate)
    futures = [
        thread.submit(lambda number=number: done.append(number), urgent=each) for number, each in enumerate(urgent)
    ]
    gate.set()
    for future in futures:
        thread.wait(future)
    assert sorted(done) == list(range(len(urgent)))
    for kind in (True, False):
        mine = [number for number in done if urgent[number] is kind]
        assert mine == sorted(mine)
    # After at most eight urgent pieces of work in a row, another one goes first.
    waiting = done.copy()
    while waiting and not all(urgent[number] for number in waiting):
        first = next(at for at, number in enumerate(waiting) if not urgent[number])
        assert first <= 8
        waiting = waiting[first + 1 :]


def test_urgent_work_goes_first_and_other_work_keeps_a_share(gate: threading.Event) -> None:
    thread, done = GpuThread("GPU 7", hangs_s=20.0), list[str]()
    held(thread, gate)
    futures = [thread.submit(lambda: done.append("bulk")) for _ in range(2)]
    futures += [thread.submit(lambda: done.append("urgent"), urgent=True) for _ in range(18)]
    gate.set()
    for future in futures:
        thread.wait(future)
    assert done == ["urgent"] * 8 + ["bulk"] + ["urgent"] * 8 + ["bulk"] + ["urgent"] * 2


def test_an_error_is_the_callers_and_the_thread_goes_on() -> None:
    thread = GpuThread("GPU 7", hangs_s=20.0)

    def fail() -> None:
        raise TimeoutError("of the work itself")

    with pytest.raises(TimeoutError, match="of the work itself"):
        thread.run(fail)
    assert thread.run(lambda: 5) == 5
    assert thread.run(threading.get_ident) == thread.run(threading.get_ident)
    assert not thread.lost


def test_a_result_that_comes_just_after_the_time_limit_counts() -> None:
    class Late(Future[int]):
        def result(self, timeout: float | None = None) -> int:
            if self.done():
                return super().result(timeout)
            self.set_result(5)
            raise TimeoutError

    assert GpuThread("GPU 7", hangs_s=20.0).wait(Late()) == 5


def test_a_run_that_hangs_loses_the_gpu_for_all_that_wait(gate: threading.Event) -> None:
    thread = GpuThread("GPU 7", hangs_s=0.1)
    running, queued = thread.submit(lambda: gate.wait(10)), thread.submit(lambda: 5)
    with ThreadPoolExecutor(2) as callers:
        waiting = [callers.submit(thread.wait, future) for future in (running, queued)]
        for each in waiting:
            with pytest.raises(GpuLostError) as lost:
                each.result(10)
            assert lost.value.failure.status is Status.UNAVAILABLE
    assert "has not ended for" in thread.lost
    with pytest.raises(GpuLostError):
        thread.submit(lambda: 5)
    gate.set()  # a run that ends after all changes nothing
    with pytest.raises(GpuLostError):
        thread.run(lambda: 5)


@pytest.mark.parametrize("loading_s", [299.0, 301.0])
def test_loading_has_a_longer_limit_of_its_own(gate: threading.Event, loading_s: float) -> None:
    now_s = 0.0
    thread = GpuThread("GPU 7", hangs_s=0.1, clock=lambda: now_s)
    began = threading.Event()
    loading = thread.submit(lambda: (began.set(), gate.wait(10))[1], hangs_s=300)
    assert began.wait(10)
    now_s = loading_s
    thread.end_if_hung(1.0)
    if loading_s > 300:
        assert "has not ended for 301 s" in thread.lost
        with pytest.raises(GpuLostError):
            thread.wait(loading)
    else:
        assert not thread.lost
        gate.set()
        assert thread.wait(loading)


def test_the_first_reason_counts_and_the_process_can_ask_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_watch, "_threads", {})
    first, second = gpu_thread(0), gpu_thread(1)
    assert gpu_thread(0) is first
    assert lost_gpu() == ""
    second.give_up("fell off the bus")
    second.give_up("is still gone")
    assert lost_gpu() == "GPU 1 is lost: fell off the bus"
    assert first.run(lambda: 5) == 5


def test_the_time_of_runs_is_counted_without_the_time_between() -> None:
    now_s = 0.0

    def advance() -> None:
        nonlocal now_s
        now_s += 2.0

    thread = GpuThread("GPU 7", hangs_s=20.0, clock=lambda: now_s)
    for _ in range(3):
        thread.run(advance)
        now_s += 50.0
    assert thread.busy_s == 6.0


def test_an_idle_thread_keeps_no_work_alive() -> None:
    class Model:
        pass

    thread, model = GpuThread("GPU 7", hangs_s=20.0), Model()
    kept = weakref.ref(model)
    thread.run(lambda model=model: model)
    thread.run(lambda: None)
    del model
    gc.collect()
    assert kept() is None
