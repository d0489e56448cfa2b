"""The OpenAPI 3.1 document of a gateway."""

from importlib.metadata import version
from typing import Any, Final

from gradewire_gateway.openapi_endpoints import PAGE_SCHEMAS, SCHEMAS, endpoint_paths, page_paths
from gradewire_gateway.openapi_schemas import Schema, Schemas, described, reference
from gradewire_gateway.problems import CODE_TABLE, MEDIA_TYPE
from gradewire_gateway.requests import TIMEOUT_HEADER
from gradewire_gateway.twins import LINES_TYPE
from gradewire_gateway.wire import RpcMethod, all_methods, descriptor_of
from gradewire_proto.wire_rules import REQUEST_ID_KEY

_JSON: Final = "application/json"
_OWN_STATUSES: Final = (408, 413, 415, 421)
"""Of the gateway itself, beside those that gRPC codes become."""
_PROBLEM: Final[Schema] = {
    "type": "object",
    "required": ["title", "status", "detail", "code", "requestId"],
    "properties": {
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "For people; at most 1 000 characters."},
        "code": {"type": "string", "description": "The gRPC code in lower case: invalid_argument, unavailable, …"},
        "requestId": {"type": "string", "description": "Stands in the logs of gateway and server."},
        "field": {"type": "string", "description": "Path of the field at fault."},
        "retryAfterS": {"type": "number", "description": "Seconds after which trying again may help."},
    },
}
_HEALTH: Final[Schema] = {"type": "object", "required": ["status"], "properties": {"status": {"type": "string"}}}


def document(*, with_page: bool = True) -> dict[str, Any]:
    """Made of the protos' descriptors; a method that is added there is in it.

    Args:
        with_page: Whether the gateway has the page, and what the page asks.
    """
    schemas = Schemas()
    paths = {method.path: {"post": _operation(method, schemas)} for method in all_methods()}
    paths |= {
        **endpoint_paths(_problems()),
        **(page_paths(_problems()) if with_page else {}),
        "/healthz": {"get": _own("health", "Whether the server takes calls.", _HEALTH, (401, 503))},
        "/openapi.json": {"get": _own("openapi", "This document.", {"type": "object"}, ())},
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "gradewire",
            "version": version("gradewire"),
            "description": "Grades answers. Bodies are the JSON form of the messages of gradewire.v1; descriptions "
            "are the protos' own, and name fields as these do.",
        },
        "paths": paths,
        "security": [{}, {"token": []}],
        "components": {
            "schemas": {
                **dict(sorted(schemas.found.items())),
                **SCHEMAS,
                **(PAGE_SCHEMAS if with_page else {}),
                "Problem": _PROBLEM,
            },
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "parameters": {
                "Timeout": {
                    "name": TIMEOUT_HEADER,
                    "in": "header",
                    "description": "Milliseconds that the caller waits; the server's default where it is left out.",
                    "schema": {"type": "integer", "minimum": 1, "maximum": 9_999_999_999},
                },
                "RequestId": {
                    "name": REQUEST_ID_KEY,
                    "in": "header",
                    "description": "Stands in the logs and comes back: 1 to 128 letters, digits and _.:/+=-. Where "
                    "there is none, or another one, the gateway makes one.",
                    "schema": {"type": "string"},
                },
            },
        },
    }


def _operation(method: RpcMethod, schemas: Schemas) -> dict[str, Any]:
    request = schemas.message(descriptor_of(method.request_type))
    reply = schemas.message(descriptor_of(method.reply_type))
    return {
        "operationId": f"{method.service.rpartition('.')[2]}.{method.name}",
        "tags": [method.service],
        **described(f"{method.service}.{method.name}"),
        "parameters": [{"$ref": "#/components/parameters/Timeout"}, {"$ref": "#/components/parameters/RequestId"}],
        "requestBody": {"required": True, "content": _content(request, lines=method.client_streaming)},
        "responses": {
            "200": {"description": "The reply.", "content": _content(reply, lines=method.server_streaming)},
            **_problems(),
        },
    }


def _content(schema: Schema, *, lines: bool) -> dict[str, Any]:
    if not lines:
        return {_JSON: {"schema": schema}}
    # OpenAPI 3.1 has no word for a sequence of messages; 3.2 has this one.
    note = "A message a line."
    return {LINES_TYPE: {"schema": {"type": "string", "description": note}, "x-item-schema": schema}}


def _own(name: str, summary: str, schema: Schema, problems: tuple[int, ...]) -> dict[str, Any]:
    responses: dict[str, Any] = {"200": {"description": summary, "content": {_JSON: {"schema": schema}}}}
    for status in problems:
        content = {_JSON: {"schema": schema}} if status == 503 else {MEDIA_TYPE: {"schema": reference("Problem")}}
        responses[str(status)] = {"description": "It does not.", "content": content}
    return {"operationId": name, "summary": summary, "responses": responses}


def _problems() -> dict[str, Any]:
    statuses = sorted({row.status for row in CODE_TABLE.values()} | set(_OWN_STATUSES))
    codes = {
        status: sorted(code.name.lower() for code, row in CODE_TABLE.items() if row.status == status)
        for status in statuses
    }
    return {
        str(status): {
            "description": f"A problem: {', '.join(codes[status])}." if codes[status] else "A problem of the gateway.",
            "content": {MEDIA_TYPE: {"schema": reference("Problem")}},
        }
        for status in statuses
    }
