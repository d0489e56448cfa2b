"""What the page asks, in the OpenAPI document."""

from typing import Any, Final

from gradewire_gateway.openapi.schemas import Schema, reference
from gradewire_gateway.page.access import ACCESS_PATH
from gradewire_gateway.page.report import REPORT_PATH

_TEXT: Final[Schema] = {"type": "string"}
SCHEMAS: Final[dict[str, Schema]] = {
    "PageAccess": {
        "type": "object",
        "required": ["token"],
        "properties": {
            "token": {
                "enum": ["none", "known", "needed", "unknown"],
                "description": "none: the server asks for no token; needed: it does, and there is none; unknown: the "
                "server does not know it.",
            },
            "scoring": {**_TEXT, "description": "Why the token is not good for scoring; empty where it is."},
            "figures": {**_TEXT, "description": "Why it is not good for Monitoring.Snapshot; empty where it is."},
            "report": {
                "type": "object",
                "required": ["available", "maxBytes"],
                "properties": {"available": {"type": "boolean"}, "maxBytes": {"type": "integer"}},
            },
        },
    },
    "ScoredRow": {
        "type": "object",
        "required": ["row", "scores"],
        "properties": {
            "row": {"type": "object", "description": "As a file of gradewire agree has it, with a label."},
            "scores": {
                "type": "object",
                "additionalProperties": {"type": "object"},
                "description": "By metric, as gradewire score writes them.",
            },
        },
    },
}


def page_paths(problems: dict[str, Any]) -> dict[str, Any]:
    """The paths; `problems` are the answers of calls that fail."""
    return {
        "/": {
            "get": {
                "operationId": "page",
                "summary": "The page for people.",
                "responses": {"200": {"description": "It.", "content": {"text/html": {"schema": _TEXT}}}},
            }
        },
        ACCESS_PATH: {
            "get": {
                "operationId": "access",
                "summary": "What the caller's token is good for; 200 also where it is good for nothing.",
                "responses": {
                    "200": {
                        "description": "What.",
                        "content": {"application/json": {"schema": reference("PageAccess")}},
                    },
                    **problems,
                },
            }
        },
        REPORT_PATH: {
            "post": {
                "operationId": "report",
                "summary": "The report of gradewire agree over rows with labels and scores, a row a line.",
                "requestBody": {
                    "required": True,
                    "content": {
                        "application/x-ndjson": {"schema": _TEXT, "x-item-schema": reference("ScoredRow")},
                    },
                },
                "responses": {"200": {"description": "It.", "content": {"text/html": {"schema": _TEXT}}}, **problems},
            }
        },
    }
