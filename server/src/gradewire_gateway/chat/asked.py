"""A request of the chat endpoint as one of Judging.Complete; what a judge cannot do is refused, not left out."""

from collections.abc import Mapping
from typing import Any, Final

from gradewire_gateway.problems import invalid
from gradewire_gateway.wire.fields import count_of, list_of, object_of, text_of
from gradewire_proto.v1 import judging_pb2, types_pb2

DEFAULT_MODEL: Final = "default"
"""Stands for the server's default judge, for clients that must name one."""
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
"""Fields that would change the answer, with the values that change nothing; null is one always."""


def completion_of(body: Mapping[str, Any]) -> judging_pb2.CompleteRequest:
    """What a judge is asked; raises ProblemError, which names the field."""
    for name, values in _ONLY.items():
        given = body.get(name)
        if given is not None and not any(given == value for value in values):
            allowed = " or ".join(repr(value) for value in values) or "nothing"
            raise invalid(
                f"{name}: takes {allowed} here: a judge writes its most probable words, as one text without tools", name
            )
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
        raise invalid(f"{at}.role: takes {', '.join(_ROLES)}", f"{at}.role")
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
        raise invalid(f"{at}.type: takes text or image_url", f"{at}.type")


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
