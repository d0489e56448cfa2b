"""The breaker opens on failures within a window, and a probe decides when it closes."""

from gradewire_server.concurrency.breaker import Breaker, BreakerState


class Bench:
    def __init__(self) -> None:
        self.now_s = 0.0
        self.states: list[BreakerState] = []
        self.breaker = Breaker(failures_to_open=3, window_s=10, clock=lambda: self.now_s, changed=self.states.append)

    def fail(self, times: int, every_s: float = 0) -> None:
        for _ in range(times):
            self.breaker.failed()
            self.now_s += every_s


def test_few_failures_leave_it_closed() -> None:
    bench = Bench()
    bench.fail(2)
    assert bench.breaker.closed
    assert not bench.states


def test_enough_failures_in_the_window_open_it() -> None:
    bench = Bench()
    bench.fail(3, every_s=4.9)
    assert bench.states == [BreakerState.OPEN]


def test_rare_failures_never_open_it() -> None:
    bench = Bench()
    bench.fail(50, every_s=6)
    assert bench.breaker.closed


def test_successes_between_do_not_hide_a_flaky_backend() -> None:
    bench = Bench()
    for _ in range(3):
        bench.breaker.failed()
        bench.breaker.succeeded()
    assert not bench.breaker.closed


def test_a_good_probe_closes_it_and_forgets() -> None:
    bench = Bench()
    bench.fail(3)
    bench.breaker.probing()
    assert bench.breaker.state is BreakerState.HALF_OPEN
    bench.breaker.succeeded()
    assert bench.breaker.closed
    bench.fail(2)
    assert bench.breaker.closed


def test_a_bad_probe_opens_it_again() -> None:
    bench = Bench()
    bench.fail(3)
    bench.breaker.probing()
    bench.breaker.failed()
    assert bench.states == [BreakerState.OPEN, BreakerState.HALF_OPEN, BreakerState.OPEN]


def test_a_straggler_s_success_does_not_close_an_open_breaker() -> None:
    bench = Bench()
    bench.fail(3)
    bench.breaker.succeeded()
    assert bench.breaker.state is BreakerState.OPEN
