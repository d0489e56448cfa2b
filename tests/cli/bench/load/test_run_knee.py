from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import example_count

from gradewire_cli.bench.load.run import Outcome, find_knee


def server(capacity: float, client: float = float("inf")) -> tuple[Callable[[float], Outcome], list[float]]:
    tried: list[float] = []

    def measure(rate: float) -> Outcome:
        tried.append(rate)
        if rate > client:
            return Outcome.VOID
        return Outcome.HOLDS if rate <= capacity else Outcome.MISSES

    return measure, tried


@given(capacity=st.floats(0.1, 1e4), start=st.floats(0.1, 1e4))
@settings(max_examples=example_count(50))
def test_the_knee_is_found_within_a_tenth_wherever_the_search_begins(capacity: float, start: float) -> None:
    measure, _ = server(capacity)
    knee = find_knee(measure, start_per_s=start)
    assert knee.rate_per_s is not None
    assert capacity / 1.1 <= knee.rate_per_s * (1 + 1e-9)
    assert knee.rate_per_s <= capacity
    assert not knee.client_limited
    assert not knee.at_most


def test_a_rate_that_misses_once_is_tried_again() -> None:
    measure, tried = server(100)
    chance = iter([Outcome.MISSES])
    knee = find_knee(lambda rate: next(chance, None) or measure(rate), start_per_s=80)
    assert tried[0] == 80
    assert knee.rate_per_s == pytest.approx(100, rel=0.1)


def test_a_client_that_offers_no_more_is_no_knee_of_the_server() -> None:
    measure, _ = server(1000, client=100)
    knee = find_knee(measure, start_per_s=10)
    assert knee.client_limited
    assert knee.rate_per_s is not None
    assert 90 < knee.rate_per_s <= 100


def test_the_highest_rate_is_not_passed() -> None:
    measure, tried = server(1000)
    knee = find_knee(measure, start_per_s=30, most_per_s=100)
    assert knee.rate_per_s == 100
    assert knee.at_most
    assert max(tried) == 100


def test_a_server_that_keeps_up_with_nothing_has_no_knee() -> None:
    measure, tried = server(0)
    assert find_knee(measure, start_per_s=1).rate_per_s is None
    assert min(tried) < 0.02


def test_a_server_that_goes_away_ends_the_search_at_its_second_absence() -> None:
    measure, tried = server(1000)
    away = [Outcome.LOST, Outcome.LOST]
    knee = find_knee(lambda rate: away.pop() if rate > 50 else measure(rate), start_per_s=40)
    assert knee.lost
    assert knee.rate_per_s == 40
    assert tried == [40]
    back = [Outcome.LOST]
    knee = find_knee(lambda rate: back.pop() if back else measure(rate), start_per_s=40, most_per_s=60)
    assert not knee.lost
    assert knee.rate_per_s == 60


@pytest.mark.parametrize("stopped_at", [0, 1, 3, 5])
def test_an_interrupted_search_keeps_the_best_rate_so_far(stopped_at: int) -> None:
    measure, tried = server(100)

    def stopping(rate: float) -> Outcome:
        return Outcome.STOPPED if len(tried) == stopped_at else measure(rate)

    knee = find_knee(stopping, start_per_s=40)
    assert knee.stopped
    assert len(tried) == stopped_at
    assert knee.rate_per_s == max((rate for rate in tried if rate <= 100), default=None)
