"""However often the same thing happens, the log says it a few times a second and how many it left out."""

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_server.rpc.log_bound import FloodFilter, RateBound


@given(st.lists(st.tuples(st.sampled_from("ab"), st.floats(0, 0.6)), max_size=200), st.integers(1, 5))
def test_at_most_so_many_a_second_and_none_is_forgotten(steps: list[tuple[str, float]], per_s: int) -> None:
    now_s = 0.0
    bound: RateBound[str] = RateBound(per_s, clock=lambda: now_s)
    passed: dict[str, list[float]] = {"a": [], "b": []}
    told = 0
    for kind, waited_s in steps:
        now_s += waited_s
        if bound.admit(kind):
            passed[kind].append(now_s)
        told += sum(bound.left_out().values())
    told += sum(bound.left_out(at_once=True).values())
    assert told + sum(map(len, passed.values())) == len(steps)
    assert not bound.waiting
    for times in passed.values():
        # Two windows can meet within a second, so twice as many is what one second can hold.
        assert all(sum(1 for each in times if start <= each < start + 1) <= 2 * per_s for start in times)


def test_nothing_is_kept_of_what_was_long_ago() -> None:
    now_s = 0.0
    bound: RateBound[int] = RateBound(1, clock=lambda: now_s)
    for kind in range(100):
        bound.admit(kind)
    now_s = 2.0
    bound.left_out()
    assert not bound._windows


def record(name: str, line: int = 1, error: BaseException | None = None) -> logging.LogRecord:
    exc_info = (type(error), error, None) if error is not None else None
    return logging.LogRecord(name, logging.ERROR, "file.py", line, "said", (), exc_info)


def test_one_place_is_bounded_and_others_are_heard(caplog: pytest.LogCaptureFixture) -> None:
    flood, left_out = FloodFilter(per_s=5, clock=lambda: 0.0), []
    flood.on_left_out = lambda: left_out.append(1)
    assert [flood.filter(record("a")) for _ in range(8)] == [True] * 5 + [False] * 3
    assert flood.filter(record("a", line=2))
    assert len(left_out) == 3
    with caplog.at_level(logging.WARNING):
        flood.tell(at_once=True)
    assert [each.getMessage() for each in caplog.records] == ["3 more messages of a (line 1) were left out"]


def test_a_reply_that_nobody_waits_for_is_counted_and_no_defect_is_hidden() -> None:
    lost_error = type("ExecuteBatchError", (Exception,), {})
    flood, lost = FloodFilter(), []
    flood.on_lost_call = lambda: lost.append(1)
    assert not flood.filter(record("grpc._cython.cygrpc", error=lost_error()))
    assert len(lost) == 1
    assert flood.filter(record("grpc._cython.cygrpc", error=ValueError("a defect")))
    assert flood.filter(record("gradewire_server.rpc.calls", error=lost_error()))
    assert len(lost) == 1


def test_with_level_debug_a_lost_reply_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.getLogger(), "level", logging.DEBUG)
    logging.getLogger().manager._clear_cache()  # type: ignore[attr-defined]
    said = record("grpc._cython.cygrpc", error=type("ExecuteBatchError", (Exception,), {})())
    assert FloodFilter().filter(said)
    assert (said.levelname, said.exc_info) == ("DEBUG", None)


def test_metadata_that_are_not_utf_8_are_one_line_without_their_value() -> None:
    error = UnicodeDecodeError("utf-8", b"Bearer \xff", 7, 8, "invalid start byte")
    broken = logging.LogRecord(
        "grpc._cython.cygrpc", logging.ERROR, "file", 1, "Invalid encoding on %s", (b"Bearer \xff",), None
    )
    broken.exc_info = (type(error), error, None)
    assert FloodFilter().filter(broken)
    assert (broken.getMessage(), broken.levelname) == ("a caller sent metadata that are not UTF-8", "WARNING")
    assert broken.exc_info is None
