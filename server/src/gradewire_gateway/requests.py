"""An HTTP request's options for the call to the server, and the request's record for the log and the metrics."""

import base64
import re
import secrets
from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from starlette.datastructures import Headers
from starlette.types import Scope

from gradewire_gateway.problems import invalid
from gradewire_gateway.upstream import CallOptions
from gradewire_proto.tracing.spans import EVALUATED_KEY, EVENTS_KEY, TRACEPARENT_KEY, TRACESTATE_KEY
from gradewire_proto.wire_rules import AUTHORIZATION_KEY, PEER_KEY, REQUEST_ID_KEY, bearer

if TYPE_CHECKING:
    from gradewire_proto.tracing.otel import OtelSpan

TIMEOUT_HEADER: Final = "connect-timeout-ms"
_KEY: Final = "gradewire"
_BASIC: Final = "basic "
_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9_.:/+=-]{1,128}")
_TIMEOUT_MS: Final = re.compile(r"[0-9]{1,10}")
_VISIBLE: Final = re.compile(r"[ -~]{1,2048}")
"""Pattern of header values that gRPC can send. All tokens are shorter than the pattern's limit."""


@dataclass(slots=True)
class RequestRecord:
    """Data about a request for the log and the metrics, collected while the gateway answers the request.

    Attributes:
        peer: The caller's host and port, such as ``127.0.0.1:50514``.
        caller: The caller whose budgets the request uses (see `gradewire_gateway.gateway`).
        route: The request's path, or "" if the gateway does not have this path.
        code: The gRPC code in lower case, "ok" until something fails.
        status: The HTTP status, 0 until the reply starts.
    """

    request_id: str
    peer: str
    caller: Hashable = ""
    route: str = ""
    code: str = "ok"
    status: int = 0
    request_bytes: int = 0
    reply_bytes: int = 0
    span: "OtelSpan | None" = None


def new_record(scope: Scope) -> RequestRecord:
    """Create the record of a new request. `record_of` returns this record later."""
    given = Headers(scope=scope).get(REQUEST_ID_KEY, "")
    request_id = given if _REQUEST_ID.fullmatch(given) else f"http-{secrets.token_hex(8)}"
    client: tuple[str, int] | None = scope.get("client")
    record = RequestRecord(request_id, _peer(*client) if client else "")
    scope[_KEY] = record
    return record


def record_of(scope: Scope) -> RequestRecord:
    """Return the record that `new_record` made."""
    record: RequestRecord = scope[_KEY]
    return record


def call_options(scope: Scope, *, send_peer: bool) -> CallOptions:
    """Return the options for a request's call from the request's headers; raise ProblemError for an invalid header."""
    headers, record = Headers(scope=scope), record_of(scope)
    metadata = [(REQUEST_ID_KEY, record.request_id)]
    authorization = headers.get("authorization", "")
    if _VISIBLE.fullmatch(authorization):  # no token contains other characters
        metadata.append((AUTHORIZATION_KEY, authorization))
    if send_peer and _VISIBLE.fullmatch(record.peer):
        metadata.append((PEER_KEY, record.peer))
    span = record.span
    if span is None:
        metadata += _passed_on(headers, TRACEPARENT_KEY, TRACESTATE_KEY)
    elif not span.is_sampled:
        metadata += span.metadata()
    elif EVALUATED_KEY not in headers:
        # Name the caller's span, because the server would otherwise treat the gateway's span as the caller's.
        metadata += [(EVALUATED_KEY, value) for _, value in _passed_on(headers, TRACEPARENT_KEY)]
    metadata += _passed_on(headers, EVENTS_KEY, EVALUATED_KEY)
    traced = span if span is not None and span.is_sampled else None
    return CallOptions(tuple(metadata), _timeout_s(headers), traced)


def with_bearer(authorization: str) -> str:
    """Return the header `Authorization` with a bearer token; "" for Basic credentials without a token.

    Frameworks' clients cannot send a bearer token. For ``http://user:TOKEN@host/`` they send Basic credentials, so the
    gateway uses the password as the token.
    """
    if not authorization.lower().startswith(_BASIC):
        return authorization
    try:
        credentials = base64.b64decode(authorization[len(_BASIC) :], validate=True).decode("ascii")
    except ValueError:  # also binascii.Error and UnicodeDecodeError
        return ""
    token = credentials.partition(":")[2]
    return bearer(token) if token.isprintable() and token else ""


def _passed_on(headers: Headers, *names: str) -> list[tuple[str, str]]:
    """Return the named headers to pass on unchanged, except headers whose values gRPC cannot send."""
    return [(name, value) for name in names if _VISIBLE.fullmatch(value := headers.get(name, ""))]


def _peer(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _timeout_s(headers: Headers) -> float | None:
    given = headers.get(TIMEOUT_HEADER)
    if given is None:
        return None
    if not _TIMEOUT_MS.fullmatch(given) or int(given) == 0:
        raise invalid(
            f"the header {TIMEOUT_HEADER} must be a number of milliseconds from 1 to 9999999999", TIMEOUT_HEADER
        )
    return int(given) / 1000
