"""``POST /v1/systemone`` and ``POST /v1/decisions``."""

from typing import Any, Final

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from gradewire_gateway.decisions import openai_form, system_one
from gradewire_gateway.decisions.asked import Asked
from gradewire_gateway.decisions.deciding import decide
from gradewire_gateway.gateway import Gateway
from gradewire_gateway.requests import call_options, record_of
from gradewire_gateway.twins.unary import JSON_TYPE
from gradewire_gateway.wire.body import Body
from gradewire_gateway.wire.messages import read_object

SYSTEM_ONE_PATH: Final = "/v1/systemone"
DECISIONS_PATH: Final = "/v1/decisions"


class DecisionEndpoint:
    """An ASGI app that answers questions in one of the forms.

    Args:
        gateway: What it calls.
        path: Of the form.
    """

    def __init__(self, gateway: Gateway, path: str) -> None:
        self._gateway = gateway
        self._form = {SYSTEM_ONE_PATH: system_one, DECISIONS_PATH: openai_form}[path]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request; raises ProblemError and DisconnectedError where it is not answered."""
        gateway = self._gateway
        with Body(receive, Headers(scope=scope), gateway.settings.bounds, gateway.budget) as body:
            body.check_type(JSON_TYPE)
            options = call_options(scope, tell_peer=gateway.upstream.private)
            data = await body.read()
            record_of(scope).request_bytes = body.size_bytes
            given, asked = await gateway.json.made_of(data, self._read)
            decisions = await decide(gateway, asked, options, body)
        answer: dict[str, Any] = self._form.written(asked, given["questions"], decisions)
        await JSONResponse(answer)(scope, receive, send)

    def _read(self, data: bytes) -> tuple[dict[str, Any], Asked]:
        given = read_object(data)
        return given, self._form.read(given)
