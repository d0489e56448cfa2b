"""``POST /page/report``: rows with labels and scores in, the page of `gradewire agree --report` out."""

import asyncio
import os
import sys
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from gradewire_gateway.gateway import Gateway
from gradewire_gateway.page.access import Access, can_report
from gradewire_gateway.problems import Problem, ProblemError, invalid, too_busy
from gradewire_gateway.requests import record_of
from gradewire_gateway.twins.stream import LINE_TYPES
from gradewire_gateway.wire.body import Body, DisconnectedError
from gradewire_proto.conventions.exit_codes import ExitCode

REPORT_PATH: Final = "/page/report"
_PROGRAM: Final = "gradewire.cli.agree.scored_rows"
"""Known by its name alone: the gateway imports nothing of the client."""
_MISSING: Final = "a report needs what the gateway's machine does not have: pip install 'gradewire[agree]'"
_TIMEOUT_S: Final = 120.0


class Report:
    """Has a process make reports, one at a time: what they compute would hold up the event loop.

    Args:
        gateway: Whose server says who may.
    """

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._access = Access(gateway)
        self._busy = False

    async def made(self, request: Request) -> Response:
        """The report; raises ProblemError and DisconnectedError where there is none."""
        gateway = self._gateway
        with Body(request.receive, request.headers, gateway.settings.bounds, gateway.budget) as body:
            body.check_type(*LINE_TYPES)
            if not can_report():
                raise ProblemError(Problem(501, "unimplemented", _MISSING))
            refused = await self._access.scoring_refusal(request)
            if refused is not None:
                raise ProblemError(refused)
            self._check_free()  # before its rows are read into memory
            lines = await body.read()
            record_of(request.scope).request_bytes = body.size_bytes
            self._check_free()
            self._busy = True
            try:
                page = await _run(lines, body)
            finally:
                self._busy = False
        return Response(page, media_type="text/html; charset=utf-8", headers={"content-security-policy": "sandbox"})

    def _check_free(self) -> None:
        if self._busy:
            raise too_busy("another report is being made")


async def _run(lines: bytes, body: Body) -> bytes:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",  # what lies in the working directory is no module of ours
        "-m",
        _PROGRAM,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={name: value for name, value in os.environ.items() if not name.upper().startswith("GRADEWIRE_")},
    )
    gone = asyncio.ensure_future(body.disconnected())
    told = asyncio.ensure_future(process.communicate(lines))
    try:
        await asyncio.wait((told, gone), timeout=_TIMEOUT_S, return_when=asyncio.FIRST_COMPLETED)
        if told.done():
            page, said = told.result()
            return _checked(process.returncode, page, said.decode(errors="replace").strip())
        if gone.done():
            raise DisconnectedError
        detail = f"the report took longer than {_TIMEOUT_S:g} s: make it of fewer rows, or with gradewire agree"
        raise ProblemError(Problem(504, "deadline_exceeded", detail))
    finally:
        gone.cancel()
        if process.returncode is None:
            process.kill()
            await process.wait()
        told.cancel()


def _checked(code: int | None, page: bytes, said: str) -> bytes:
    if code == 0:
        return page
    if code == ExitCode.UNUSABLE:
        raise invalid(said.removeprefix("Error: "))
    raise RuntimeError(f"making a report ended with exit code {code}: {said}")
