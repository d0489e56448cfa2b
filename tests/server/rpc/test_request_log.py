"""The request log: sampled, levelled, bounded, written off the loop."""

import io
import json
import logging
import sys
import threading
from typing import Any

import pytest

from gradewire_server.rpc.request_log import CallRecord, JsonFormatter, RequestLog


def record(code: str = "OK") -> CallRecord:
    return CallRecord("id", "gradewire.v1.Scoring/Score", "ipv4:127.0.0.1:1", code=code)


async def lines_of(log: RequestLog, stream: io.StringIO, *codes: str) -> list[str]:
    for code in codes:
        log.add(record(code))
    await log.close()
    return [json.loads(line)["code"] for line in stream.getvalue().splitlines()]


@pytest.mark.parametrize(
    ("level", "share", "logged"),
    [
        (logging.INFO, 1.0, ["OK", "INVALID_ARGUMENT", "INTERNAL"]),
        (logging.INFO, 0.0, ["INVALID_ARGUMENT", "INTERNAL"]),
        (logging.WARNING, 1.0, ["INVALID_ARGUMENT", "INTERNAL"]),
        (logging.ERROR, 1.0, ["INTERNAL"]),
    ],
)
async def test_failures_are_always_logged_unless_the_level_forbids(level: int, share: float, logged: list[str]) -> None:
    stream = io.StringIO()
    log = RequestLog(share=share, level=level, stream=stream)
    assert await lines_of(log, stream, "OK", "INVALID_ARGUMENT", "INTERNAL") == logged


async def test_a_full_buffer_drops_and_counts() -> None:
    dropped: list[int] = []
    stream = io.StringIO()
    log = RequestLog(stream=stream, on_drop=lambda: dropped.append(1))
    assert len(await lines_of(log, stream, *["OK"] * 10_005)) == 10_000
    assert len(dropped) == 5


async def test_it_is_written_by_another_thread() -> None:
    threads: list[int] = []

    class Stream(io.StringIO):
        def write(self, text: str) -> int:
            threads.append(threading.get_ident())
            return super().write(text)

    log = RequestLog(stream=Stream())
    log.add(record())
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


async def test_a_flood_of_failures_is_a_few_lines_and_a_number() -> None:
    text = io.StringIO()
    dropped: list[int] = []
    log = RequestLog(stream=text, on_drop=lambda: dropped.append(1))
    for number in range(5000):
        log.add(CallRecord(f"id-{number}", "gradewire.v1.Scoring/Score", "ipv4:127.0.0.1:1", code="INVALID_ARGUMENT"))
    log.add(CallRecord("other", "gradewire.v1.Scoring/Score", "ipv4:127.0.0.1:1", code="INTERNAL"))
    log.add(CallRecord("well", "gradewire.v1.Scoring/Score", "ipv4:127.0.0.1:1", code="OK"))
    await log.close()
    lines = [json.loads(line) for line in text.getvalue().splitlines()]
    failed = [line for line in lines if line["event"] == "call" and line["code"] == "INVALID_ARGUMENT"]
    told = [line for line in lines if line["event"] == "calls left out"]
    assert {line["request_id"] for line in lines if line["event"] == "call"} >= {"other", "well"}
    assert 50 <= len(failed) <= 100  # two of its seconds, at the most
    assert sum(line["calls"] for line in told) + len(failed) == 5000
    assert len(dropped) == 5000 - len(failed)
    assert len(text.getvalue()) < 64_000


async def test_no_record_is_long() -> None:
    stream = io.StringIO()
    log = RequestLog(stream=stream)
    log.add(CallRecord("i" * 9999, "method", "p" * 9999, metrics=["m" * 9999] * 100_000, code="OK", at="a" * 9999))
    await log.close()
    line = json.loads(stream.getvalue())
    assert len(stream.getvalue()) < 32_768
    assert len(line["metrics"]) == 64
    assert line["peer"].endswith("…")
