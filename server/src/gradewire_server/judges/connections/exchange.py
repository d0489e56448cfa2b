"""The protocol of connections to a judge's server, with its errors and limits."""

import urllib.request
from collections.abc import Mapping
from typing import Final, NamedTuple, Protocol
from urllib.parse import urlsplit

CONNECT_TIMEOUT_S: Final = 10.0
KEEP_ALIVE_S: Final = 30.0
MAX_ANSWER_BYTES: Final = 1 << 20
TOO_LARGE: Final = "more than 1 MiB"
WRONG_ENCODING: Final = "a body that does not match its encoding"


class NoReplyError(Exception):
    """Raised when a connection failed or broke, or when a reply is not HTTP."""


class BodyError(Exception):
    """Raised when a reply's body cannot be used. The message says what the server sent."""


class Received(NamedTuple):
    """An HTTP reply.

    Attributes:
        content: The body, at most 1 MiB.
        retry_after: The header, or "".
    """

    status: int
    content: bytes
    retry_after: str


class Connections(Protocol):
    """Connections to one server."""

    async def exchange(self, method: str, url: str, body: bytes | None, headers: Mapping[str, str]) -> Received:
        """Send a request, and return the reply; raise NoReplyError or BodyError on failure."""

    async def close(self) -> None:
        """Close all connections."""


def proxy_of(address: str) -> str | None:
    """Return the proxy that the environment (HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY) names for an address."""
    parts = urlsplit(address)
    if urllib.request.proxy_bypass(parts.netloc):
        return None
    proxies = urllib.request.getproxies()
    return proxies.get(parts.scheme) or proxies.get("all")
