"""The gateway's request log has a limit per second for each method and status, and counts what it omits."""

import asyncio
import io
import json
from collections import Counter
from typing import Any

from gradewire_gateway.observing import RequestLog
from gradewire_gateway.requests import RequestRecord


def record(status: int, code: str) -> RequestRecord:
    return RequestRecord(request_id="r", peer="127.0.0.1:1", status=status, code=code)


def lines_of(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


async def test_a_flood_of_one_status_hides_no_other() -> None:
    stream = io.StringIO()
    log = RequestLog(stream=stream)
    for _ in range(300):
        log.add(record(404, "not_found"), "GET", 0.001)
    for _ in range(117):
        log.add(record(405, "unimplemented"), "GET", 0.001)
    log.add(record(404, "not_found"), "POST", 0.001)
    log.close()
    lines = lines_of(stream)
    logged = Counter((line["method"], line["status"]) for line in lines if line["event"] == "request")
    assert logged == {("GET", 404): 200, ("GET", 405): 117, ("POST", 404): 1}
    omitted = [line for line in lines if line["event"] == "requests left out"]
    assert [(line["method"], line["status"], line["requests"]) for line in omitted] == [("GET", 404, 100)]


async def test_omitted_requests_are_counted_although_no_further_request_comes() -> None:
    counted = asyncio.Event()

    class Stream(io.StringIO):
        def write(self, text: str) -> int:
            if "requests left out" in text:
                counted.set()
            return super().write(text)

    stream = Stream()
    log = RequestLog(stream=stream)
    for _ in range(201):
        log.add(record(200, "ok"), "POST", 0.001)
    await asyncio.wait_for(counted.wait(), 30)
    assert lines_of(stream)[-1]["requests"] == 1
    log.add(record(200, "ok"), "POST", 0.001)  # a new second
    assert lines_of(stream)[-1]["event"] == "request"
    log.close()
    assert len(lines_of(stream)) == 202


async def test_invented_methods_share_one_limit() -> None:
    stream = io.StringIO()
    log = RequestLog(stream=stream)
    for number in range(300):
        log.add(record(405, "unimplemented"), f"M{number}", 0.001)
    log.close()
    assert {line["method"] for line in lines_of(stream)} == {"other"}
    assert len(lines_of(stream)) == 201


async def test_a_server_that_is_not_ready_yet_is_no_error() -> None:
    stream = io.StringIO()
    log = RequestLog(stream=stream)
    for status, code in ((200, "ok"), (503, "ok"), (404, "not_found"), (503, "unavailable")):
        log.add(record(status, code), "GET", 0.001)
    log.close()
    assert [line["level"] for line in lines_of(stream)] == ["info", "warning", "warning", "error"]
