"""The chat endpoint in the OpenAPI document: what of it is taken here."""

from typing import Any, Final

from gradewire_gateway.chat.endpoints import CHAT_PATH, MODELS_PATH
from gradewire_gateway.openapi.schemas import Schema, reference

_TEXT: Final[Schema] = {"type": "string"}
_PART: Final[Schema] = {
    "oneOf": [
        {"type": "object", "required": ["type", "text"], "properties": {"type": {"const": "text"}, "text": _TEXT}},
        {
            "type": "object",
            "required": ["type", "image_url"],
            "properties": {
                "type": {"const": "image_url"},
                "image_url": {"type": "object", "required": ["url"], "properties": {"url": _TEXT}},
            },
        },
    ]
}
_MESSAGE: Final[Schema] = {
    "type": "object",
    "required": ["role", "content"],
    "properties": {
        "role": {"enum": ["system", "developer", "user", "assistant"]},
        "content": {"oneOf": [_TEXT, {"type": "array", "items": _PART}]},
    },
}
SCHEMAS: Final[dict[str, Schema]] = {
    "ChatRequest": {
        "type": "object",
        "required": ["messages"],
        "properties": {
            "model": {"type": "string", "description": "A judge of GET /v1/models; default: the server's own."},
            "messages": {"type": "array", "minItems": 1, "maxItems": 256, "items": _MESSAGE},
            "max_tokens": {"type": "integer", "minimum": 1, "maximum": 4096},
            "max_completion_tokens": {"type": "integer", "minimum": 1, "maximum": 4096},
            "stop": {"oneOf": [_TEXT, {"type": "array", "maxItems": 4, "items": _TEXT}]},
            "temperature": {"const": 0},
        },
    },
    "ChatCompletion": {
        "type": "object",
        "required": ["id", "object", "created", "model", "choices"],
        "properties": {
            "id": _TEXT,
            "object": {"const": "chat.completion"},
            "created": {"type": "integer"},
            "model": _TEXT,
            "system_fingerprint": {"type": "string", "description": "Begin of the judge's digest."},
            "choices": {"type": "array", "items": {"type": "object"}},
            "usage": {"type": "object"},
        },
    },
    "JudgeModels": {"type": "object", "required": ["object", "data"]},
}


def chat_paths(problems: dict[str, Any]) -> dict[str, Any]:
    """The paths; `problems` are the answers of calls that fail."""
    return {
        CHAT_PATH: {
            "post": {
                "operationId": "chat",
                "summary": "What a judge says next in a chat.",
                "requestBody": {"required": True, "content": _json("ChatRequest")},
                "responses": {"200": {"description": "What it says.", "content": _json("ChatCompletion")}, **problems},
            }
        },
        MODELS_PATH: {
            "get": {
                "operationId": "judges",
                "summary": "The judges that can be asked.",
                "responses": {"200": {"description": "They.", "content": _json("JudgeModels")}, **problems},
            }
        },
    }


def _json(schema: str) -> dict[str, Any]:
    return {"application/json": {"schema": reference(schema)}}
