"""The page's files, who may use it, and its reports, over a real socket and without a browser."""

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support.servers.gateway import LINES, RunningGateway, gateway_over
from tests.support.servers.wire import Wire, until, wire_server

from gradewire_cli.pages.page import page_assets
from gradewire_gateway.page import page_files

BEARER = {"authorization": "Bearer right"}
REPORT = "/page/report"


@pytest.fixture
async def gateway() -> AsyncIterator[RunningGateway]:
    """In front of a server that asks for a token."""
    async with wire_server(tokens=("right",)) as wire, gateway_over(f"127.0.0.1:{wire.port}") as running:
        yield running


def lines(count: int) -> str:
    """Labelled rows with their scores."""
    row = {"question": "q", "references": ["a"], "prediction": "b", "label": 1}
    return "\n".join([json.dumps({"row": row, "scores": {"smile": {"score": 0.5, "status": "OK"}}})] * count)


async def test_files_are_public_and_known_by_their_content(gateway: RunningGateway) -> None:
    for file in page_files():
        reply = await gateway.client.get(file.path)
        assert (reply.status_code, reply.content) == (200, file.content)
        assert reply.headers["content-type"] == file.media_type
        again = await gateway.client.get(file.path, headers={"if-none-match": f'"other", {file.etag}'})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", file.etag)
    assert (await gateway.client.get("/page/nope.js")).status_code == 404
    assert (await gateway.client.get("/page/../page/files.py")).status_code == 404


async def test_browsers_are_held_to_the_page_s_own_files(gateway: RunningGateway) -> None:
    reply = await gateway.client.get("/")
    policy = dict(rule.split(" ", 1) for rule in reply.headers["content-security-policy"].split("; "))
    assert policy["default-src"] == policy["base-uri"] == policy["frame-ancestors"] == "'none'"
    assert re.fullmatch(r"'self' 'sha256-[\w+/]{43}='", policy["script-src"])
    assert "unsafe" not in reply.headers["content-security-policy"]
    assert not re.search(r"<style|style=|<script(?! type=\"module\" src=)| on\w+=|https?:", reply.text)


def test_modules_name_only_one_another_and_build_no_markup() -> None:
    files = {file.path: file.content.decode() for file in page_files()}
    for path, text in files.items():
        for found in re.findall(r'from "\./([^"]+)"', text):
            assert f"/page/{found}" in files, path
        if path.endswith(".js"):
            assert not re.search(
                r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text
            ), path
            assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text), path


async def test_access_is_told_without_an_error(gateway: RunningGateway) -> None:
    for headers, token in (({}, "needed"), ({"authorization": "Bearer wrong"}, "unknown")):
        reply = await gateway.client.get("/page/access", headers=headers)
        assert (reply.status_code, reply.json()) == (200, {"token": token})
    reply = await gateway.client.get("/page/access", headers=BEARER)
    report = {"available": True, "maxBytes": 32 << 20}
    assert reply.json() == {"token": "known", "scoring": "", "figures": "", "report": report}


async def test_a_server_without_tokens_asks_for_none(wire: Wire) -> None:
    async with gateway_over(f"127.0.0.1:{wire.port}") as running:
        assert (await running.client.get("/page/access")).json().items() >= {"token": "none", "scoring": ""}.items()


async def test_a_server_that_is_away_is_a_problem() -> None:
    async with gateway_over("127.0.0.1:1") as running:
        assert (await running.client.get("/page/access")).status_code == 503
        assert (await running.client.get("/")).status_code == 200


async def test_without_the_page_nothing_of_it_is_there(wire: Wire) -> None:
    async with gateway_over(f"127.0.0.1:{wire.port}", page=False) as running:
        for path in ("/", "/page/main.js", "/page/access"):
            assert (await running.client.get(path)).status_code == 404
        assert (await running.client.post(REPORT, content="{}", headers=LINES)).status_code == 404
        paths = (await running.client.get("/openapi.json")).json()["paths"]
        assert not [path for path in paths if path == "/" or path.startswith("/page")]


async def test_the_report_s_own_script_and_style_may_run_in_its_frame(gateway: RunningGateway) -> None:
    own = page_assets(("common.js", "report.js"), ("report.css",))["policy"]
    allowed = (await gateway.client.get("/")).headers["content-security-policy"]
    digests = re.findall(r"'sha256-[\w+/]+='", own)
    assert len(digests) == 2
    assert all(digest in allowed for digest in digests)


async def test_rows_that_make_no_report_are_told(gateway: RunningGateway) -> None:
    reply = await gateway.client.post(REPORT, content="{", headers=LINES | BEARER)
    assert (reply.status_code, reply.json()["code"]) == (400, "invalid_argument")
    assert reply.json()["detail"].startswith("line 1 is unreadable JSON")


async def test_a_report_needs_a_token_and_its_type(gateway: RunningGateway) -> None:
    assert (await gateway.client.post(REPORT, content=lines(2), headers=LINES)).status_code == 401
    assert (await gateway.client.post(REPORT, content=lines(2), headers=BEARER)).status_code == 415


def command_line(pid: str) -> bytes:
    try:
        return Path("/proc", pid, "cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):  # it ended after it was listed
        return b""


async def test_one_report_is_made_at_a_time_and_ends_with_its_caller(gateway: RunningGateway) -> None:
    def programs() -> list[str]:
        folders = Path("/proc", str(os.getpid()), "task").glob("*/children")
        pids = [pid for folder in folders for pid in folder.read_text().split()]
        return [pid for pid in pids if b"scored_rows" in command_line(pid)]

    def first_to_go() -> bool:
        """Where memory runs out, the system ends the report and not the server."""
        return [Path("/proc", pid, "oom_score_adj").read_text() for pid in programs()] == ["1000\n"]

    first = asyncio.create_task(gateway.client.post(REPORT, content=lines(2000), headers=LINES | BEARER))
    await until(first_to_go, timeout_s=20)
    second = await gateway.client.post(REPORT, content=lines(2), headers=LINES | BEARER)
    assert (second.status_code, second.headers["retry-after"]) == (429, "1")
    first.cancel()
    await until(lambda: not programs(), timeout_s=20)
    async with asyncio.timeout(20):
        while (again := await gateway.client.post(REPORT, content="", headers=LINES | BEARER)).status_code == 429:
            pass
    assert again.status_code == 400, "its place is given back"
