"""Who posts: told apart by token, and by host where the server is told the host."""

import base64
import binascii
from dataclasses import dataclass
from typing import Final

from starlette.types import Scope

from gradewire_gateway.requests import call_options
from gradewire_proto.conventions.metadata import AUTHORIZATION_KEY, PEER_KEY, bearer

_BASIC: Final = "basic "


@dataclass(frozen=True, slots=True)
class Caller:
    """Those whose samples may share a call to the server.

    Attributes:
        authorization: The header of this name; empty where there is none.
        host: That asks; empty where the server is not told.
    """

    authorization: str
    host: str

    def metadata(self) -> tuple[tuple[str, str], ...]:
        """Of calls for this caller; a host stands there with a port, which says nothing."""
        peer = f"{self.host}:0" if self.host else ""
        return tuple(
            (key, value) for key, value in ((AUTHORIZATION_KEY, self.authorization), (PEER_KEY, peer)) if value
        )


def caller_of(scope: Scope, *, tell_peer: bool) -> tuple[Caller, float | None]:
    """Who posts, and how many seconds it waits, None where it does not say; raises ProblemError as `call_options`.

    Frameworks' clients send no bearer token, but the name and password of ``http://user:TOKEN@host/`` as Basic
    credentials: there the password is taken for the token.

    Args:
        scope: ASGI's.
        tell_peer: Whether the server is told which host asks.
    """
    options = call_options(scope, tell_peer=tell_peer)
    given = dict(options.metadata)
    host = given.get(PEER_KEY, "").rpartition(":")[0]
    return Caller(_with_bearer(given.get(AUTHORIZATION_KEY, "")), host), options.timeout_s


def _with_bearer(authorization: str) -> str:
    if not authorization.lower().startswith(_BASIC):
        return authorization
    try:
        credentials = base64.b64decode(authorization[len(_BASIC) :], validate=True).decode("ascii")
    except (binascii.Error, UnicodeDecodeError):
        return ""
    token = credentials.partition(":")[2]
    return bearer(token) if token.isprintable() and token else ""
