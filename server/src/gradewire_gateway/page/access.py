"""``GET /page/access``: what the caller's token is good for, told without an error for who has none yet."""

import asyncio
from importlib.util import find_spec
from typing import Any, Final

import grpc
from google.protobuf.message import Message
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from gradewire_gateway.gateway import Gateway
from gradewire_gateway.observing.tracing import calling
from gradewire_gateway.problems import Problem, ProblemError, problem_of
from gradewire_gateway.requests import call_options
from gradewire_gateway.wire.methods import RpcMethod, method_at
from gradewire_proto.conventions.services import MODELS, MONITORING, SCORING
from gradewire_proto.v1 import models_pb2, monitoring_pb2, scoring_pb2

ACCESS_PATH: Final = "/page/access"
_UNAUTHENTICATED: Final = 401
_FORBIDDEN: Final = 403
_REPORT_NEEDS: Final = ("jinja2", "numpy", "scipy")
"""Packages of the extra `agree`."""


def can_report() -> bool:
    """Whether what makes reports is installed here."""
    return all(find_spec(name) is not None for name in _REPORT_NEEDS)


class Access:
    """Asks the server what a token is good for.

    Args:
        gateway: What it calls.
    """

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._list = method_at(f"/{MODELS}/List")
        self._score = method_at(f"/{SCORING}/Score")
        self._snapshot = method_at(f"/{MONITORING}/Snapshot")

    async def shown(self, request: Request) -> Response:
        """200 also for a token that the server does not know; raises ProblemError where the server cannot be asked."""
        refused = await self._refusal(request, self._list, models_pb2.ListModelsRequest())
        given = bool(request.headers.get("authorization"))
        if refused is not None and refused.status != _UNAUTHENTICATED:
            raise ProblemError(refused)
        if refused is not None:
            return JSONResponse({"token": "unknown" if given else "needed"})
        scoring = await self.scoring_refusal(request)
        figures = await self._refusal(request, self._snapshot, monitoring_pb2.SnapshotRequest())
        found: dict[str, Any] = {
            "token": "known" if given else "none",
            "scoring": _forbidden(scoring),
            "figures": _forbidden(figures),
            "report": {"available": can_report(), "maxBytes": self._gateway.settings.bounds.max_body_bytes},
        }
        return JSONResponse(found)

    async def scoring_refusal(self, request: Request) -> Problem | None:
        """Why the caller may not score now; None where it may. Asked with a request without items."""
        return await self._refusal(request, self._score, scoring_pb2.ScoreRequest())

    async def _refusal(self, request: Request, method: RpcMethod, message: Message) -> Problem | None:
        upstream = self._gateway.upstream
        options = call_options(request.scope, tell_peer=upstream.private)
        try:
            with calling(options, method.path) as traced:
                await _asked(upstream.unary(method, message, traced))
        except ProblemError as error:
            return error.problem
        return None


async def _asked(call: asyncio.Task[Message]) -> None:
    try:
        await call
    except grpc.aio.AioRpcError as error:
        raise ProblemError(problem_of(error)) from error
    except grpc.aio.UsageError as error:  # the channel was closed
        raise ProblemError(Problem(503, "unavailable", "the gateway is stopping; try again")) from error


def _forbidden(refused: Problem | None) -> str:
    """What the token is not good for; empty where it is, or where the server is busy and says nothing of that."""
    return refused.detail if refused is not None and refused.status == _FORBIDDEN else ""
