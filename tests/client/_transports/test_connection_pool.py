"""Which connection a call goes over, and when there is another one."""

import time
from typing import Any, cast

import pytest

from gradewire._transports.connection_pool import (
    LOOK_AGAIN_S,
    MAX_CONNECTIONS,
    ConnectionPool,
    ServerConnection,
    process_of,
)


def _open(spread: ConnectionPool, process: str = "", calls: int = 0) -> ServerConnection:
    connection = ServerConnection(cast("Any", len(spread.connections)), calls=calls, process=process)
    spread.connections.append(connection)
    return connection


def test_one_process_needs_one_connection_however_many_calls_overlap() -> None:
    spread = ConnectionPool()
    assert spread.wants_another
    _open(spread, calls=100)
    assert not spread.wants_another


def test_several_processes_get_connections_while_calls_overlap() -> None:
    spread = ConnectionPool()
    first = _open(spread, "0/2")
    assert not spread.wants_another
    first.calls = 1
    assert spread.wants_another
    _open(spread, "0/2", calls=1)
    assert spread.wants_another
    _open(spread, "1/2", calls=1)
    assert not spread.wants_another


def test_connections_are_bounded_where_a_process_is_never_found() -> None:
    spread = ConnectionPool()
    while spread.wants_another:
        _open(spread, "0/64", calls=1)
    assert len(spread.connections) == MAX_CONNECTIONS


def test_a_given_number_is_made_as_calls_overlap() -> None:
    spread = ConnectionPool(3)
    while spread.wants_another:
        _open(spread, calls=1)
    assert len(spread.connections) == 3


def test_the_process_with_the_fewest_calls_is_taken() -> None:
    spread = ConnectionPool()
    _open(spread, "0/2", calls=2)
    _open(spread, "0/2", calls=1)
    other = _open(spread, "1/2", calls=2)
    assert spread.least_loaded() is other


def test_processes_and_connections_take_turns_where_they_have_as_many_calls() -> None:
    spread = ConnectionPool()
    for process in ("0/2", "0/2", "1/2"):
        _open(spread, process)
    assert [spread.least_loaded().channel for _ in range(6)] == [0, 1, 2, 0, 1, 2]


def test_the_same_content_goes_to_the_same_process_while_that_is_hardly_busier() -> None:
    spread = ConnectionPool()
    first = _open(spread, "0/2")
    second = _open(spread, "1/2")
    assert [spread.least_loaded(content) for content in (4, 4, 5, 5)] == [first, first, second, second]
    first.calls = 2
    assert spread.least_loaded(4) is first
    first.calls = 3
    assert spread.least_loaded(4) is second
    first.calls, second.calls = 18, 8
    assert spread.least_loaded(4) is first
    spread.retire(first)
    assert spread.least_loaded(4) is second


def test_a_connection_that_found_nobody_is_left_alone_while_there_are_others() -> None:
    spread = ConnectionPool(2)
    first = _open(spread)
    second = _open(spread, calls=5)
    spread.failed(first)
    assert spread.least_loaded() is second
    spread.failed(second)
    assert spread.least_loaded() is first
    assert spread.connections == [first, second]


def test_one_that_was_tried_is_taken_only_where_there_is_no_other() -> None:
    pool = ConnectionPool()
    busy, idle = _open(pool, calls=2), _open(pool)
    for each in (busy, idle):
        pool.failed(each)
    assert pool.least_loaded() is idle
    assert pool.least_loaded(tried=[idle]) is busy
    assert pool.least_loaded(tried=[idle, busy]) is idle


def test_connections_of_a_process_that_stops_or_was_lost_are_retired() -> None:
    spread = ConnectionPool()
    first = _open(spread, "0/2", calls=1)
    second = _open(spread, "1/2")
    spread.failed(first)
    spread.failed(first)
    assert spread.connections == [second]
    assert not first.is_over
    first.calls = 0
    assert first.is_over
    spread.retire(second)
    assert spread.wants_another


def test_a_process_that_was_away_is_looked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    spread = ConnectionPool()
    while not spread.connections or spread.wants_another:
        _open(spread, "1/2", calls=2)
    idlest = spread.connections[3]
    idlest.calls = 1
    assert spread.surplus() is idlest
    assert spread.surplus() is None  # not at every call
    now_s += LOOK_AGAIN_S
    assert spread.surplus() is idlest
    spread.retire(idlest)
    assert spread.wants_another
    _open(spread, "0/2")
    now_s += LOOK_AGAIN_S
    assert spread.surplus() is None


def test_what_is_no_process_is_none() -> None:
    assert process_of("1/2") == "1/2"
    assert not any(map(process_of, ("", "1", "a/b", "/2", b"\xff/")))


def test_a_call_that_a_process_has_no_room_for_may_go_to_another_one_once() -> None:
    spread = ConnectionPool()
    first, twin, second = _open(spread, "0/2"), _open(spread, "0/2"), _open(spread, "1/2", calls=5)
    assert spread.refused(first, 0.5)
    assert spread.least_loaded() is second
    assert twin.refused_until_s == first.refused_until_s
    assert not spread.refused(second, 0.5), "all of them have refused one lately"
    assert spread.least_loaded() in {first, twin}


def test_a_call_that_was_dropped_without_a_word_does_not_go_to_the_same_process_at_once() -> None:
    spread = ConnectionPool()
    only = _open(spread, "0/2")
    assert not spread.refused(only, None)
    other = _open(spread, "1/2", calls=5)
    assert spread.refused(only, None)
    assert spread.least_loaded() is other


def test_a_refusal_is_forgotten_after_a_second_whatever_was_said() -> None:
    spread = ConnectionPool()
    first, _ = _open(spread, "0/2"), _open(spread, "1/2", calls=1)
    spread.refused(first, 60)
    first.refused_until_s -= 1
    assert spread.least_loaded() is first


def test_where_the_process_is_not_known_or_the_only_one_a_refusal_is_final() -> None:
    spread = ConnectionPool()
    only = _open(spread)
    assert not spread.refused(only, 0.5)
    _open(spread, "0/2")
    assert not spread.refused(only, None)
