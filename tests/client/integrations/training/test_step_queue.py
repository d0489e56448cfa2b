"""Who is tried again, and when."""

from itertools import pairwise

from gradewire import InvalidRequest, Overloaded, ServerUnreachable
from gradewire.integrations.training.step_queue import RetryTimes


def test_a_server_that_is_away_is_tried_at_growing_intervals_up_to_half_a_minute() -> None:
    times = RetryTimes()
    waits = [times.failed(number % 3, ServerUnreachable("away"), now_s=0.0) for number in range(12)]
    assert 0.5 <= waits[0] <= 0.6
    assert all(shorter < longer for shorter, longer in pairwise(waits[:7]))
    assert all(wait <= 36 for wait in waits)
    times.answered()
    assert times.failed(0, ServerUnreachable("away"), now_s=0.0) <= 0.6


def test_the_servers_own_word_goes_first() -> None:
    assert 7 <= RetryTimes().failed(0, Overloaded("full", retry_after_s=7.0), now_s=0.0) <= 8.4


def test_all_wait_for_the_server_and_a_refused_step_waits_alone() -> None:
    times = RetryTimes()
    wait_s = times.failed(0, ServerUnreachable("away"), now_s=100.0)
    assert times.due_s(0) == times.due_s(1) == 100.0 + wait_s
    times.answered()
    times.failed(1, InvalidRequest("no such metric"), now_s=100.0)
    assert (times.due_s(1), times.due_s(2)) == (160.0, 0.0)


def test_the_least_tried_goes_first_then_the_oldest() -> None:
    times = RetryTimes()
    times.failed(0, ServerUnreachable("away"), now_s=0.0)
    assert sorted((2, 0, 1), key=times.order) == [1, 2, 0]
    times.ended(0)
    assert sorted((2, 0, 1), key=times.order) == [0, 1, 2]
