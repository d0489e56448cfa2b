"""The chat endpoints that evaluation harnesses use: ``POST /v1/chat/completions`` and ``GET /v1/models``."""

import time
from collections.abc import Mapping
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from gradewire_gateway.gateway import Gateway
from gradewire_gateway.json_methods import Endpoint, call_unary, json_body
from gradewire_gateway.problems import check_ok, invalid
from gradewire_gateway.requests import call_options, record_of
from gradewire_gateway.wire import DEFAULT_MODEL, count_of, list_of, method_at, object_of, read_object, text_of
from gradewire_proto.v1 import judging_pb2, models_pb2, types_pb2
from gradewire_proto.wire_rules import JUDGING, MODELS

_USABLE = (models_pb2.MODEL_STATE_LOADED, models_pb2.MODEL_STATE_BUILT)

_MAX_TOKENS: Final = 4096
_ROLES: Final = {
    "system": judging_pb2.CHAT_ROLE_SYSTEM,
    "developer": judging_pb2.CHAT_ROLE_SYSTEM,
    "user": judging_pb2.CHAT_ROLE_USER,
    "assistant": judging_pb2.CHAT_ROLE_ASSISTANT,
}
_ONLY: Final[Mapping[str, tuple[Any, ...]]] = {
    "temperature": (0,),
    "top_p": (1,),
    "n": (1,),
    "stream": (False,),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
    "logit_bias": ({},),
    "tools": ([],),
    "functions": ([],),
    "tool_choice": ("none", "auto"),
    "response_format": ({"type": "text"},),
    "modalities": (["text"],),
    "audio": (),
}
"""Fields that could change the answer, with their allowed values. null is always allowed."""

CHAT_PATH: Final = "/v1/chat/completions"
MODELS_PATH: Final = "/v1/models"


def write_completion(reply: judging_pb2.CompleteResponse, request_id: str) -> dict[str, Any]:
    """Return a chat completion; raise ProblemError if the judge failed."""
    check_ok(reply)
    body: dict[str, Any] = {
        "id": f"chatcmpl-{request_id}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": reply.model,
        "system_fingerprint": reply.model_digest[:12],
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": reply.text, "refusal": None},
                "logprobs": None,
                "finish_reason": "stop" if reply.complete else "length",
            }
        ],
    }
    if reply.HasField("prompt_tokens") and reply.HasField("generated_tokens"):
        body["usage"] = {
            "prompt_tokens": reply.prompt_tokens,
            "completion_tokens": reply.generated_tokens,
            "total_tokens": reply.prompt_tokens + reply.generated_tokens,
        }
    return body


def models_body(reply: models_pb2.ListModelsResponse) -> dict[str, Any]:
    """Return the list of available judges."""
    judges = [model for model in reply.models if model.kind == "judge" and model.state in _USABLE]
    return {
        "object": "list",
        "data": [{"id": each.name, "object": "model", "created": 0, "owned_by": "gradewire"} for each in judges],
    }


def read_completion(body: Mapping[str, Any]) -> judging_pb2.CompleteRequest:
    """Return the request to a judge; raise ProblemError for an invalid body."""
    for name, values in _ONLY.items():
        given = body.get(name)
        if given is not None and not any(given == value for value in values):
            allowed = " or ".join(repr(value) for value in values) or "null"
            why = "because a judge writes only its most probable text, without tools"
            raise invalid(f"{name}: must be {allowed} {why}", name)
    model = text_of(body.get("model") or DEFAULT_MODEL, "model")
    messages = list_of(body.get("messages"), "messages")
    turns = [_turn_of(message, f"messages[{index}]") for index, message in enumerate(messages)]
    return judging_pb2.CompleteRequest(
        model="" if model == DEFAULT_MODEL else model,
        turns=turns,
        max_tokens=_max_tokens(body),
        stop=_stops(body.get("stop")),
    )


def _turn_of(given: object, at: str) -> judging_pb2.ChatTurn:
    message = object_of(given, at)
    role = message.get("role")
    if not isinstance(role, str) or role not in _ROLES:
        raise invalid(f"{at}.role: must be one of {', '.join(_ROLES)}", f"{at}.role")
    content = message.get("content")
    if isinstance(content, str):
        return judging_pb2.ChatTurn(role=_ROLES[role], text=text_of(content, f"{at}.content"))
    texts: list[str] = []
    images: list[types_pb2.Image] = []
    for index, part in enumerate(list_of(content, f"{at}.content")):
        _add_part(part, f"{at}.content[{index}]", texts, images)
    return judging_pb2.ChatTurn(role=_ROLES[role], text="\n".join(texts), images=images)


def _add_part(given: object, at: str, texts: list[str], images: list[types_pb2.Image]) -> None:
    part = object_of(given, at)
    kind = part.get("type")
    if kind == "text":
        texts.append(text_of(part.get("text"), f"{at}.text"))
    elif kind == "image_url":
        url = object_of(part.get("image_url"), f"{at}.image_url").get("url")
        images.append(types_pb2.Image(uri=text_of(url, f"{at}.image_url.url")))
    else:
        raise invalid(f"{at}.type: must be text or image_url", f"{at}.type")


def _max_tokens(body: Mapping[str, Any]) -> int:
    for name in ("max_completion_tokens", "max_tokens"):
        if body.get(name) is not None:
            return count_of(body[name], name, _MAX_TOKENS)
    return 0


def _stops(given: object) -> list[str]:
    if given is None:
        return []
    if isinstance(given, str):
        return [text_of(given, "stop")]
    return [text_of(each, f"stop[{index}]") for index, each in enumerate(list_of(given, "stop"))]


def chat_endpoint(gateway: Gateway) -> Endpoint:
    """Return the endpoint that lets a judge answer a chat."""
    method = method_at(f"/{JUDGING}/Complete")

    async def complete(request: Request) -> Response:
        read = json_body(gateway, request, lambda data: read_completion(read_object(data)))
        async with read as (message, options, body):
            reply = await call_unary(gateway, method, message, options, body)
            assert isinstance(reply, judging_pb2.CompleteResponse)  # noqa: S101 - for mypy
        return JSONResponse(write_completion(reply, record_of(request.scope).request_id))

    return complete


def judges_endpoint(gateway: Gateway) -> Endpoint:
    """Return the endpoint that lists available judges."""
    method = method_at(f"/{MODELS}/List")

    async def judges(request: Request) -> Response:
        with gateway.body_of(request.scope, request.receive) as body:
            options = call_options(request.scope, send_peer=gateway.upstream.private)
            await body.read()
            reply = await call_unary(gateway, method, models_pb2.ListModelsRequest(), options, body)
            assert isinstance(reply, models_pb2.ListModelsResponse)  # noqa: S101 - for mypy
        return JSONResponse(models_body(reply))

    return judges
