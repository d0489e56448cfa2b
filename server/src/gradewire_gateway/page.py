"""The gateway's web page: its files, the check of the caller's access, and the reports on labelled rows."""

import asyncio
import base64
import hashlib
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from google.protobuf.message import Message
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from gradewire_gateway.body import Body, DisconnectedError
from gradewire_gateway.gateway import Gateway
from gradewire_gateway.json_methods import LINE_TYPES, reply_of
from gradewire_gateway.problems import Problem, ProblemError, invalid, too_busy
from gradewire_gateway.requests import call_options, record_of
from gradewire_gateway.tracing import calling
from gradewire_gateway.wire import method_at
from gradewire_proto.exit_codes import ExitCode
from gradewire_proto.v1 import models_pb2, monitoring_pb2, scoring_pb2
from gradewire_proto.wire_rules import MODELS, MONITORING, SCORING

ACCESS_PATH: Final = "/page/access"
_UNAUTHENTICATED: Final = 401
_FORBIDDEN: Final = 403
_REPORT_NEEDS: Final = ("jinja2", "numpy", "scipy")
"""Packages in the extra `agree`."""


def can_report() -> bool:
    """Return True if the packages that reports need are installed."""
    return all(find_spec(name) is not None for name in _REPORT_NEEDS)


async def _access(gateway: Gateway, request: Request) -> Response:
    """Return what the caller's token permits; raise ProblemError if the server does not answer."""
    refused = await _refusal(gateway, request, f"/{MODELS}/List", models_pb2.ListModelsRequest())
    given = bool(request.headers.get("authorization"))
    if refused is not None and refused.status != _UNAUTHENTICATED:
        raise ProblemError(refused)
    if refused is not None:
        return JSONResponse({"token": "unknown" if given else "needed"})
    scoring = await _scoring_refusal(gateway, request)
    figures = await _refusal(gateway, request, f"/{MONITORING}/Snapshot", monitoring_pb2.SnapshotRequest())
    found: dict[str, Any] = {
        "token": "known" if given else "none",
        "scoring": _forbidden(scoring),
        "figures": _forbidden(figures),
        "report": {"available": can_report(), "maxBytes": gateway.settings.bounds.max_body_bytes},
    }
    return JSONResponse(found)


async def _scoring_refusal(gateway: Gateway, request: Request) -> Problem | None:
    """Return why the caller cannot score now, or None if the caller can score."""
    return await _refusal(gateway, request, f"/{SCORING}/Score", scoring_pb2.ScoreRequest())


async def _refusal(gateway: Gateway, request: Request, path: str, message: Message) -> Problem | None:
    options = call_options(request.scope, send_peer=gateway.upstream.private)
    try:
        with calling(options, path) as traced:
            await reply_of(gateway.upstream.unary(method_at(path), message, traced))
    except ProblemError as error:
        return error.problem
    return None


def _forbidden(refused: Problem | None) -> str:
    """Return why the server forbids a call; "" if the call is allowed or fails for a different reason."""
    return refused.detail if refused is not None and refused.status == _FORBIDDEN else ""


_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_REPORT_ASSETS: Final = {"script-src": ("common.js", "report.js"), "style-src": ("report.css",)}
"""The files that `gradewire agree --html` puts into a report, in order."""


@dataclass(frozen=True, slots=True)
class PageFile:
    """A file of the page, as bytes that are ready to send."""

    path: str
    content: bytes
    media_type: str
    etag: str

    async def response(self, request: Request) -> Response:
        """Return the file, or status 304 if the browser already has this content."""
        headers = {"etag": self.etag, "cache-control": "no-cache", **_policy_headers()}
        if self.etag in [tag.strip() for tag in request.headers.get("if-none-match", "").split(",")]:
            return Response(status_code=304, headers=headers)
        return Response(self.content, headers=headers, media_type=self.media_type)


def page_files() -> Iterator[PageFile]:
    """Yield all files of the page. The HTML file has the path ``/``."""
    for file in sorted(resources.files("gradewire_gateway").joinpath("static").iterdir(), key=lambda one: one.name):
        suffix = Path(file.name).suffix
        if suffix in _TYPES:
            content = file.read_bytes()
            path = "/" if file.name == "index.html" else f"/page/{file.name}"
            yield PageFile(path, content, _TYPES[suffix], f'"{hashlib.sha256(content).hexdigest()[:32]}"')


@cache
def _policy_headers() -> dict[str, str]:
    report = _report_digests()
    rules = {
        "default-src": "'none'",
        "script-src": f"'self'{report['script-src']}",
        "style-src": f"'self'{report['style-src']}",
        "img-src": "'self' data:",
        "connect-src": "'self'",
        "frame-src": "blob:",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }
    return {
        "content-security-policy": "; ".join(f"{name} {value}" for name, value in rules.items()),
        "referrer-policy": "no-referrer",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "permissions-policy": "camera=(), microphone=(), geolocation=()",
        "x-frame-options": "DENY",
    }


def _report_digests() -> dict[str, str]:
    """Return the digests of a report's script and style, which the page's policy must allow in the report's frame.

    Do not import `gradewire_cli`, which would load many more packages.
    """
    client = find_spec("gradewire_cli")
    places = [] if client is None else list(client.submodule_search_locations or ())
    found = dict.fromkeys(_REPORT_ASSETS, "")
    for place in places[:1]:
        folder = Path(place) / "pages" / "templates"
        for kind, names in _REPORT_ASSETS.items():
            digest = hashlib.sha256(b"".join((folder / name).read_bytes() for name in names)).digest()
            found[kind] = f" 'sha256-{base64.b64encode(digest).decode()}'"
    return found


REPORT_PATH: Final = "/page/report"
_PROGRAM: Final = "gradewire_cli.agree.scored_rows"
"""Name of the module that makes reports. The gateway must not import `gradewire_cli`."""
_MISSING: Final = "a report needs more packages on the gateway's machine. Run: pip install 'gradewire[agree]'"
_TIMEOUT_S: Final = 120.0


async def _report(gateway: Gateway, making: asyncio.Lock, request: Request) -> Response:
    """Return the report on the posted rows; raise ProblemError or DisconnectedError if there is no report.

    A separate process makes one report at a time.
    """
    with gateway.body_of(request.scope, request.receive) as body:
        body.check_type(*LINE_TYPES)
        if not can_report():
            raise ProblemError(Problem(501, "unimplemented", _MISSING))
        refused = await _scoring_refusal(gateway, request)
        if refused is not None:
            raise ProblemError(refused)
        _check_free(making)  # check before reading the rows into memory
        lines = await body.read()
        record_of(request.scope).request_bytes = body.size_bytes
        _check_free(making)
        async with making:
            page = await _run(lines, body)
    return Response(page, media_type="text/html; charset=utf-8", headers={"content-security-policy": "sandbox"})


def _check_free(making: asyncio.Lock) -> None:
    if making.locked():
        raise too_busy("another report is being made; try again")


async def _run(lines: bytearray, body: Body) -> bytes:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",  # never import modules from the working directory
        "-m",
        _PROGRAM,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={name: value for name, value in os.environ.items() if not name.upper().startswith("GRADEWIRE_")},
    )
    gone = asyncio.ensure_future(body.disconnected())
    report = asyncio.ensure_future(process.communicate(lines))
    try:
        await asyncio.wait((report, gone), timeout=_TIMEOUT_S, return_when=asyncio.FIRST_COMPLETED)
        if report.done():
            page, errors = report.result()
            return _checked(process.returncode, page, errors.decode(errors="replace").strip())
        if gone.done():
            raise DisconnectedError
        detail = f"the report took longer than {_TIMEOUT_S:g} s; send fewer rows, or run gradewire agree"
        raise ProblemError(Problem(504, "deadline_exceeded", detail))
    finally:
        gone.cancel()
        if process.returncode is None:
            process.kill()
            await process.wait()
        report.cancel()


def _checked(code: int | None, page: bytes, errors: str) -> bytes:
    if code == 0:
        return page
    if code == ExitCode.UNUSABLE:
        raise invalid(errors.removeprefix("Error: "))
    raise RuntimeError(f"{_PROGRAM} ended with exit code {code}: {errors}")


def page_routes(gateway: Gateway) -> list[Route]:
    """Return the routes for the page, its files, the access check and reports; [] if the page is turned off."""
    if not gateway.settings.page:
        return []
    return [
        *(Route(file.path, file.response) for file in page_files()),
        Route(ACCESS_PATH, partial(_access, gateway)),
        Route(REPORT_PATH, partial(_report, gateway, asyncio.Lock()), methods=["POST"]),
    ]
