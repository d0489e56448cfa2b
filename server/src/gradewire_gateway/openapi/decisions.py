"""The endpoints of typed questions in the OpenAPI document."""

from typing import Any, Final

from gradewire_gateway.decisions.endpoints import DECISIONS_PATH, SYSTEM_ONE_PATH
from gradewire_gateway.decisions.questions import MAX_OPTIONS, MAX_QUESTIONS
from gradewire_gateway.openapi.schemas import Schema, reference

_TEXT: Final[Schema] = {"type": "string"}
_FILLED: Final[Schema] = {"type": "string", "pattern": "\\S"}
_MODEL: Final[Schema] = {
    "type": "string",
    "description": "A judge of GET /v1/models; default: the server's own. correctness grades an answer.",
}
_USAGE: Final[Schema] = {"type": "object", "required": ["input_tokens", "output_tokens"]}
_SYSTEM_ONE_QUESTION: Final[Schema] = {
    "type": "object",
    "required": ["type", "instructions"],
    "properties": {
        "type": {"enum": ["noul", "choice", "score"]},
        "instructions": _FILLED,
        "criteria": {
            "oneOf": [
                {"type": "object", "additionalProperties": _TEXT, "minProperties": 2, "maxProperties": MAX_OPTIONS},
                {"type": "array", "items": _TEXT, "minItems": 2, "maxItems": MAX_OPTIONS},
            ]
        },
    },
}


def _listed(name: str, kind: str, key: str, value: Schema) -> Schema:
    option = {"type": "object", "required": [key], "properties": {key: value, "description": _TEXT}}
    listed = {"type": "array", "items": option, "minItems": 2, "maxItems": MAX_OPTIONS}
    properties = {"type": {"const": kind}, "name": _TEXT, "instructions": _FILLED, name: listed}
    return {"type": "object", "required": ["type", "instructions", name], "properties": properties}


_OPENAI_QUESTION: Final[Schema] = {
    "oneOf": [
        {
            "type": "object",
            "required": ["type", "instructions"],
            "properties": {"type": {"const": "predicate"}, "name": _TEXT, "instructions": _FILLED},
        },
        _listed("choices", "choice", "value", {"type": ["string", "boolean"]}),
        _listed("levels", "score", "label", _TEXT),
    ]
}
SCHEMAS: Final[dict[str, Schema]] = {
    "SystemOneRequest": {
        "type": "object",
        "required": ["state", "questions"],
        "properties": {
            "model": _MODEL,
            "state": {"description": "A text, or a value of JSON.", "not": {"type": "null"}},
            "questions": {
                "type": "object",
                "additionalProperties": _SYSTEM_ONE_QUESTION,
                "minProperties": 1,
                "maxProperties": MAX_QUESTIONS,
            },
        },
    },
    "SystemOneReply": {
        "type": "object",
        "required": ["model", "answers", "usage"],
        "properties": {"model": _TEXT, "answers": {"type": "object"}, "usage": _USAGE},
    },
    "DecisionsRequest": {
        "type": "object",
        "required": ["input", "questions"],
        "properties": {
            "model": _MODEL,
            "input": {"oneOf": [_TEXT, {"type": "array", "items": {"type": "object"}}]},
            "questions": {"type": "array", "items": _OPENAI_QUESTION, "minItems": 1, "maxItems": MAX_QUESTIONS},
        },
    },
    "DecisionsReply": {
        "type": "object",
        "required": ["model", "answers", "usage"],
        "properties": {"model": _TEXT, "answers": {"type": "array", "items": {"type": "object"}}, "usage": _USAGE},
    },
}


def decision_paths(problems: dict[str, Any]) -> dict[str, Any]:
    """The paths; `problems` are the answers of calls that fail."""
    forms = {SYSTEM_ONE_PATH: ("systemOne", "SystemOne"), DECISIONS_PATH: ("decisions", "Decisions")}
    return {
        path: {
            "post": {
                "operationId": name,
                "summary": "Typed questions about a state, answered with probabilities.",
                "requestBody": {"required": True, "content": _json(f"{schema}Request")},
                "responses": {"200": {"description": "The answers.", "content": _json(f"{schema}Reply")}, **problems},
            }
        }
        for path, (name, schema) in forms.items()
    }


def _json(schema: str) -> dict[str, Any]:
    return {"application/json": {"schema": reference(schema)}}
