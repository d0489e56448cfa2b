"""The local web server of `gradewire label`. It answers only on this machine, and only to its own pages.

Each annotator's page has a secret path, so that other programs and web sites on this machine cannot find it. Requests
with the name of another host (DNS rebinding) or from another site's page are refused.
"""

from __future__ import annotations

import json
import secrets
import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from socketserver import TCPServer, ThreadingMixIn
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import parse_qs

from typing_extensions import override

from gradewire_cli.label.label_file import LABELS, RIGHT, UNCLEAR, WRONG
from gradewire_cli.label.session import FLAGS
from gradewire_cli.pages.page import page_assets, template_of
from gradewire_cli.problems import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradewire_cli.label.session import Session

HOST: Final = "127.0.0.1"
_MAX_BODY_BYTES: Final = 1024
_MAX_READ_BYTES: Final = 65_536
_MAX_DIGITS: Final = 9
_TIMEOUT_S: Final = 30
_JSON: Final = "application/json"
_HTML: Final = "text/html; charset=utf-8"
_PLAIN: Final = "text/plain; charset=utf-8"
_POLICY: Final = "connect-src 'self'; frame-ancestors 'none'"


class _RefusedError(Exception):
    """Raised for a request that gets no answer."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


class LabelServer(ThreadingMixIn, TCPServer):
    """A server for the pages of one or several annotators. http.server's own class would look up a name in the DNS.

    Attributes:
        pages: Each annotator's name and page, by the page's secret path.
        hosts: The names of this server, with the port.
        urls: Each annotator's address.
    """

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, session: Session, annotators: Sequence[str], port: int) -> None:
        """Listen on a port of this machine (0 means any free port).

        Raises:
            InputError: The port cannot be used, or jinja2 is not installed.
        """
        self.session = session
        self.pages = {secrets.token_urlsafe(16): (name, _page(name)) for name in annotators}
        try:
            super().__init__((HOST, port), _Handler)
        except OSError as error:
            raise InputError(f"--port {port}: {error.strerror or error}. Use another port") from error
        port = self.server_address[1]
        self.hosts = {f"{name}:{port}" for name in (HOST, "localhost")}
        self.urls = {name: f"http://{HOST}:{port}/{secret}/" for secret, (name, _) in self.pages.items()}

    @override
    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):  # the browser may leave at any time
            super().handle_error(request, client_address)


def _page(annotator: str) -> tuple[str, bytes]:
    """Return the content security policy and the HTML of an annotator's page."""
    assets = page_assets(("common.js", "label.js"), ("report.css", "label.css"))
    values = {"right": RIGHT, "unclear": UNCLEAR, "wrong": WRONG}
    html = template_of("label.html").render(assets, annotator=annotator, values=values, flags=FLAGS)
    return f"{assets['policy']}; {_POLICY}", html.encode()


class _Handler(BaseHTTPRequestHandler):
    """A connection of a browser, for one request."""

    server: LabelServer
    timeout = _TIMEOUT_S

    def do_GET(self) -> None:
        """Send an annotator's page, or the state that it shows."""
        self._answer("GET", b"")

    def do_POST(self) -> None:
        """Store a label, and send the new state."""
        size = self.headers.get("Content-Length", "")
        # A browser may miss the reply to a body that was not read.
        self._answer("POST", self.rfile.read(min(int(size), _MAX_READ_BYTES)) if _is_number(size) else b"")

    def _answer(self, method: Literal["GET", "POST"], body: bytes) -> None:
        try:
            self._dispatch(method, body)
        except _RefusedError as error:
            self._fail(error.status, str(error))
        except IndexError:
            self._fail(HTTPStatus.NOT_FOUND, "there is no row at this position")

    def _dispatch(self, method: Literal["GET", "POST"], body: bytes) -> None:
        """Answer a request; raise _RefusedError or IndexError if it gets no answer."""
        self._check_host()
        path, _, query = self.path.partition("?")
        secret, _, name = path.removeprefix("/").partition("/")
        annotator, (policy, html) = self._page_at(secret)
        match method, name:
            case "GET", "":
                self._send(HTTPStatus.OK, html, _HTML, policy)
            case "GET", "state":
                at = parse_qs(query).get("at", [""])[0]
                self._send_state(annotator, _position(at) if at else None)
            case "POST", "label":
                self._send_state(annotator, self._store(annotator, body))
            case _:
                raise _RefusedError(HTTPStatus.NOT_FOUND, "there is no such page")

    def _check_host(self) -> None:
        # A page of another site can reach this port under a name of its own, but cannot change this header.
        if self.headers.get_all("Host", []) not in [[host] for host in self.server.hosts]:
            raise _RefusedError(HTTPStatus.MISDIRECTED_REQUEST, f"open the page at {HOST} or localhost")

    def _page_at(self, secret: str) -> tuple[str, tuple[str, bytes]]:
        for known, page in self.server.pages.items():
            if secrets.compare_digest(known.encode(), secret.encode(errors="replace")):
                return page
        raise _RefusedError(HTTPStatus.NOT_FOUND, "there is no such page")

    def _store(self, annotator: str, body: bytes) -> int:
        """Store the label, the flags and the class in a request's body, and return its position."""
        given, session = self._given(body), self.server.session
        position: int = given["position"]
        try:
            # The class depends on the label, so it comes last.
            if "flags" in given:
                session.set_flags(position, annotator, given["flags"])
            if "label" in given:
                session.set(position, annotator, given["label"])
            if "errorClass" in given:
                session.set_class(position, annotator, given["errorClass"])
        except OSError as error:
            message = f"the label was not stored: {error.strerror or error}"
            raise _RefusedError(HTTPStatus.INTERNAL_SERVER_ERROR, message) from error
        except ValueError as error:
            raise _RefusedError(HTTPStatus.BAD_REQUEST, str(error)) from error
        return position

    def _given(self, body: bytes) -> dict[str, Any]:
        """Return a request's body: the position, and one or more of label, flags and errorClass, each of its type."""
        if self.headers.get("Origin", "") not in {f"http://{host}" for host in self.server.hosts}:
            raise _RefusedError(HTTPStatus.FORBIDDEN, "the request comes from another page")
        if self.headers.get_content_type() != _JSON:
            raise _RefusedError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"the body must be {_JSON}")
        if len(body) > _MAX_BODY_BYTES:
            raise _RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body has more than {_MAX_BODY_BYTES} bytes")
        try:
            read: Any = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise _RefusedError(HTTPStatus.BAD_REQUEST, "the body is not JSON") from error
        given = read if isinstance(read, dict) else {}
        label, flags, error_class = given.get("label"), given.get("flags", []), given.get("errorClass")
        are_valid = (
            type(given.get("position")) is int
            and not given.keys().isdisjoint({"label", "flags", "errorClass"})
            and (label is None or (type(label) in {int, float} and label in LABELS))
            and isinstance(flags, list)
            and all(flag in FLAGS for flag in flags)
            and (error_class is None or isinstance(error_class, str))
        )
        if not are_valid:
            message = f"send a position, and a label out of {LABELS} or null, flags out of {FLAGS}, or an errorClass"
            raise _RefusedError(HTTPStatus.BAD_REQUEST, message)
        return {**given, **({} if label is None else {"label": float(label)})}

    def _send_state(self, annotator: str, position: int | None) -> None:
        state = self.server.session.state(annotator, position)
        self._send(HTTPStatus.OK, json.dumps(state).encode(), _JSON)

    def _fail(self, status: HTTPStatus, message: str) -> None:
        self._send(status, message.encode(errors="replace"), _PLAIN)

    def _send(self, status: HTTPStatus, content: bytes, media_type: str, policy: str = "default-src 'none'") -> None:
        self.send_response(status)
        headers = {
            "Content-Type": media_type,
            "Content-Length": str(len(content)),
            "Cache-Control": "no-store",
            "Content-Security-Policy": policy,
            "Cross-Origin-Opener-Policy": "same-origin",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
            "X-Frame-Options": "DENY",
        }
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    @override
    def version_string(self) -> str:
        return "gradewire"

    @override
    def log_message(self, format: str, *args: object) -> None:
        """Log nothing, because the page shows errors and the paths are secret."""


def _position(text: str) -> int:
    if not _is_number(text):
        raise _RefusedError(HTTPStatus.BAD_REQUEST, "a position is a number from 0 on")
    return int(text)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS
