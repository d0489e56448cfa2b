"""However often the same thing happens, the log says it a few times a second and how many it left out."""

import asyncio
import io
import json
import logging
import sys
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_server.rpc.log import CallRecord, FloodFilter, JsonFormatter, RateBound, RequestLog


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
        flood.report(at_once=True)
    assert [each.getMessage() for each in caplog.records] == ["omitted 3 more messages from a (line 1)"]


def test_a_reply_that_nobody_waits_for_is_counted_and_no_defect_is_hidden() -> None:
    lost_error = type("ExecuteBatchError", (Exception,), {})
    flood, lost = FloodFilter(), []
    flood.on_lost_call = lambda: lost.append(1)
    assert not flood.filter(record("grpc._cython.cygrpc", error=lost_error()))
    assert len(lost) == 1
    assert flood.filter(record("grpc._cython.cygrpc", error=ValueError("a defect")))
    assert flood.filter(record("gradewire_server.rpc.dispatch", error=lost_error()))
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
    assert (broken.getMessage(), broken.levelname) == ("a caller sent metadata that is not UTF-8", "WARNING")
    assert broken.exc_info is None


def record_request_log(code: str = "OK") -> CallRecord:
    return CallRecord("id", "gradewire.v1.Scoring/Score", "ipv4:127.0.0.1:1", code=code)


async def lines_of(log: RequestLog, stream: io.StringIO, *codes: str) -> list[str]:
    for code in codes:
        log.add(record_request_log(code))
    await log.close()
    return [json.loads(line)["code"] for line in stream.getvalue().splitlines()]


@pytest.mark.parametrize(
    ("level", "logged"),
    [
        (logging.INFO, ["OK", "INVALID_ARGUMENT", "RESOURCE_EXHAUSTED", "INTERNAL"]),
        (logging.WARNING, ["INVALID_ARGUMENT", "RESOURCE_EXHAUSTED", "INTERNAL"]),
        (logging.ERROR, ["INTERNAL"]),
    ],
)
async def test_calls_of_the_level_and_above_are_logged(level: int, logged: list[str]) -> None:
    stream = io.StringIO()
    log = RequestLog(level=level, stream=stream)
    assert await lines_of(log, stream, "OK", "INVALID_ARGUMENT", "RESOURCE_EXHAUSTED", "INTERNAL") == logged


async def test_a_full_buffer_drops_and_counts() -> None:
    dropped: list[int] = []
    writing, may_write = threading.Event(), threading.Event()

    class Stream(io.StringIO):
        def write(self, text: str) -> int:
            writing.set()
            assert may_write.wait(30)
            return super().write(text)

    stream = Stream()
    log = RequestLog(stream=stream, on_drop=lambda: dropped.append(1))
    log.add(record_request_log())
    assert await asyncio.to_thread(writing.wait, 30)
    for number in range(10_005):
        log.add(CallRecord("id", f"method-{number % 100}", "ipv4:127.0.0.1:1", code="OK"))
    await asyncio.sleep(0.5)  # longer than the log keeps records while its thread is free
    assert len(dropped) == 5
    may_write.set()
    await log.close()
    calls = [line for line in stream.getvalue().splitlines() if json.loads(line)["event"] == "call"]
    assert len(calls) == 1 + 10_000


async def test_it_is_written_by_another_thread() -> None:
    threads: list[int] = []

    class Stream(io.StringIO):
        def write(self, text: str) -> int:
            threads.append(threading.get_ident())
            return super().write(text)

    log = RequestLog(stream=Stream())
    log.add(record_request_log())
    await log.close()
    assert threads
    assert threading.get_ident() not in threads


def test_server_messages_are_json_too() -> None:
    def failing() -> Any:
        raise ZeroDivisionError

    try:
        failing()
    except ZeroDivisionError:
        logged = logging.LogRecord("n", logging.ERROR, "p", 1, "it %s\nso", ("broke",), sys.exc_info())
    line = JsonFormatter().format(logged)
    assert "\n" not in line
    fields = json.loads(line)
    assert (fields["level"], fields["event"], fields["logger"]) == ("error", "it broke\nso", "n")
    assert "ZeroDivisionError" in fields["traceback"]


@pytest.mark.parametrize("code", ["OK", "INVALID_ARGUMENT"])
async def test_a_flood_of_calls_is_a_few_lines_and_a_number(code: str) -> None:
    text = io.StringIO()
    dropped: list[int] = []
    log = RequestLog(stream=text, on_drop=lambda: dropped.append(1))
    for number in range(5000):
        log.add(CallRecord(f"id-{number}", "gradewire.v1.Scoring/Score", "ipv4:127.0.0.1:1", code=code))
    log.add(CallRecord("other", "gradewire.v1.Scoring/Score", "ipv4:127.0.0.1:1", code="INTERNAL"))
    log.add(CallRecord("well", "gradewire.v1.Scoring/Compare", "ipv4:127.0.0.1:1", code="OK"))
    await log.close()
    lines = [json.loads(line) for line in text.getvalue().splitlines()]
    logged = [line for line in lines if line["event"] == "call" and line["request_id"].startswith("id-")]
    told = [line for line in lines if line["event"] == "calls left out"]
    assert {line["request_id"] for line in lines if line["event"] == "call"} >= {"other", "well"}
    assert 200 <= len(logged) <= 400  # two of its seconds, at the most
    assert sum(line["calls"] for line in told) + len(logged) == 5000
    assert len(dropped) == 5000 - len(logged)
    assert len(text.getvalue()) < 160_000


async def test_no_record_is_long() -> None:
    stream = io.StringIO()
    log = RequestLog(stream=stream)
    log.add(CallRecord("i" * 9999, "method", "p" * 9999, metrics=["m" * 9999] * 100_000, code="OK", at="a" * 9999))
    await log.close()
    line = json.loads(stream.getvalue())
    assert len(stream.getvalue()) < 32_768
    assert len(line["metrics"]) == 64
    assert line["peer"].endswith("…")
