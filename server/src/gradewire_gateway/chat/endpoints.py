"""``POST /v1/chat/completions`` and ``GET /v1/models``."""

from typing import Final

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from gradewire_gateway.chat.answered import completion_body, models_body
from gradewire_gateway.chat.asked import completion_of
from gradewire_gateway.gateway import Gateway
from gradewire_gateway.requests import call_options, record_of
from gradewire_gateway.twins.unary import JSON_TYPE, call_unary
from gradewire_gateway.wire.body import Body
from gradewire_gateway.wire.messages import read_object
from gradewire_gateway.wire.methods import method_at
from gradewire_proto.conventions.services import JUDGING, MODELS
from gradewire_proto.v1 import judging_pb2, models_pb2

CHAT_PATH: Final = "/v1/chat/completions"
MODELS_PATH: Final = "/v1/models"


class ChatCompletions:
    """An ASGI app: has a judge write.

    Args:
        gateway: What it calls.
    """

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._method = method_at(f"/{JUDGING}/Complete")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request; raises ProblemError and DisconnectedError where it is not answered."""
        gateway, record = self._gateway, record_of(scope)
        with Body(receive, Headers(scope=scope), gateway.settings.bounds, gateway.budget) as body:
            body.check_type(JSON_TYPE)
            options = call_options(scope, tell_peer=gateway.upstream.private)
            data = await body.read()
            record.request_bytes = body.size_bytes
            request = await gateway.json.made_of(data, lambda data: completion_of(read_object(data)))
            del data
            reply = await call_unary(gateway, self._method, request, options, body)
            assert isinstance(reply, judging_pb2.CompleteResponse)  # noqa: S101 - for mypy: it is the method's
        await JSONResponse(completion_body(reply, record.request_id))(scope, receive, send)


class JudgeList:
    """An ASGI app: the judges that can be asked.

    Args:
        gateway: What it calls.
    """

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._method = method_at(f"/{MODELS}/List")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request; errors as of `ChatCompletions`."""
        gateway = self._gateway
        with Body(receive, Headers(scope=scope), gateway.settings.bounds, gateway.budget) as body:
            options = call_options(scope, tell_peer=gateway.upstream.private)
            await body.read()
            reply = await call_unary(gateway, self._method, models_pb2.ListModelsRequest(), options, body)
            assert isinstance(reply, models_pb2.ListModelsResponse)  # noqa: S101 - for mypy: it is the method's
        await JSONResponse(models_body(reply))(scope, receive, send)
