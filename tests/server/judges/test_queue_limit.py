"""How much may wait, and when those who are turned away may come back."""

import pytest

from gradewire_server.domain.result import Failure, Status
from gradewire_server.judges import queue_limit
from gradewire_server.judges.queue_limit import QueueLimit


def test_it_refuses_what_is_too_much_until_something_leaves() -> None:
    limit = QueueLimit(2)
    assert [limit.enter() is None for _ in range(3)] == [True, True, False]
    assert limit.waiting == 2
    limit.leave()
    assert limit.enter() is None


def test_the_hint_is_half_the_queue_at_the_pace_of_the_last_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    limit = QueueLimit(2)
    assert limit.full(8).retry_after_s == 1.0  # nothing is known of the pace
    for now_s in (10.0, 13.0, 16.0):
        monkeypatch.setattr(queue_limit.time, "monotonic", lambda now_s=now_s: now_s)
        limit.finished()
    assert [limit.full(waiting).retry_after_s for waiting in (0, 8, 1000)] == [1.0, 12.0, 60.0]
    assert "8 items" in limit.full(8).message
    assert "judge_max_queue_items" in limit.full(8).message


def test_once_closed_it_refuses_everything_and_sends_callers_elsewhere() -> None:
    limit = QueueLimit(2)
    limit.close()
    refusal = limit.enter()
    assert isinstance(refusal, Failure)
    assert refusal.status is Status.UNAVAILABLE
    assert "another replica" in refusal.message
    assert limit.waiting == 0
