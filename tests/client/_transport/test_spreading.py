"""Which connection a call goes over, and when there is another one."""

from gradewire._transport.spreading import MAX_CONNECTIONS, Connection, Spread, process_of


def _open(spread: Spread[int], process: str = "", calls: int = 0) -> Connection[int]:
    connection = Connection(len(spread.connections), calls=calls, process=process)
    spread.connections.append(connection)
    return connection


def test_one_process_needs_one_connection_however_many_calls_overlap() -> None:
    spread: Spread[int] = Spread()
    assert spread.wants_another
    _open(spread, calls=100)
    assert not spread.wants_another


def test_several_processes_get_connections_while_calls_overlap() -> None:
    spread: Spread[int] = Spread()
    first = _open(spread, "0/2")
    assert not spread.wants_another
    first.calls = 1
    assert spread.wants_another
    _open(spread, "0/2", calls=1)
    assert spread.wants_another
    _open(spread, "1/2", calls=1)
    assert not spread.wants_another


def test_connections_are_bounded_where_a_process_is_never_found() -> None:
    spread: Spread[int] = Spread()
    while spread.wants_another:
        _open(spread, "0/64", calls=1)
    assert len(spread.connections) == MAX_CONNECTIONS


def test_a_given_number_is_made_as_calls_overlap() -> None:
    spread: Spread[int] = Spread(3)
    while spread.wants_another:
        _open(spread, calls=1)
    assert len(spread.connections) == 3


def test_the_process_with_the_fewest_calls_is_taken() -> None:
    spread: Spread[int] = Spread()
    _open(spread, "0/2", calls=2)
    _open(spread, "0/2", calls=1)
    other = _open(spread, "1/2", calls=2)
    assert spread.least_loaded() is other


def test_a_connection_that_found_nobody_is_left_alone_while_there_are_others() -> None:
    spread: Spread[int] = Spread()
    first = _open(spread, "0/2")
    second = _open(spread, "1/2", calls=5)
    first.failed()
    assert spread.least_loaded() is second
    assert not first.process
    second.failed()
    assert spread.least_loaded() is first


def test_what_is_no_process_is_none() -> None:
    assert process_of("1/2") == "1/2"
    assert not any(map(process_of, ("", "1", "a/b", "/2", b"\xff/")))


def test_a_call_that_a_process_has_no_room_for_may_go_to_another_one_once() -> None:
    spread: Spread[int] = Spread()
    first, twin, second = _open(spread, "0/2"), _open(spread, "0/2"), _open(spread, "1/2", calls=5)
    assert spread.refused(first, 0.5)
    assert spread.least_loaded() is second
    assert twin.refused_until_s == first.refused_until_s
    assert not spread.refused(second, 0.5), "all of them have refused one lately"
    assert spread.least_loaded() in {first, twin}


def test_a_refusal_is_forgotten_after_a_second_whatever_was_said() -> None:
    spread: Spread[int] = Spread()
    first, _ = _open(spread, "0/2"), _open(spread, "1/2", calls=1)
    spread.refused(first, 60)
    first.refused_until_s -= 1
    assert spread.least_loaded() is first


def test_where_the_process_is_not_known_or_the_only_one_a_refusal_is_final() -> None:
    spread: Spread[int] = Spread()
    only = _open(spread)
    assert not spread.refused(only, 0.5)
    _open(spread, "0/2")
    assert not spread.refused(only, None)
