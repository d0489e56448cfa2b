"""The protocol of connections to a judge's server, with its errors and limits."""

import ssl
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
    """Raised when a connection failed or broke, or when a reply is not HTTP. The message may be a reason, or ""."""


class ProxyError(Exception):
    """Raised when no connection can use a proxy's address."""


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


class Proxy(NamedTuple):
    """A proxy, and the environment variable that names it."""

    address: str
    variable: str


def proxy_of(address: str) -> Proxy | None:
    """Return the proxy that the environment (HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY) names for an address."""
    parts = urlsplit(address)
    if urllib.request.proxy_bypass(parts.netloc):
        return None
    proxies = urllib.request.getproxies()
    for scheme in (parts.scheme, "all"):
        named = proxies.get(scheme, "").strip()
        if named:
            # Many tools accept a proxy without a scheme.
            return Proxy(named if "://" in named else f"http://{named}", f"{scheme.upper()}_PROXY")
    return None


def tls_reason(error: BaseException | None) -> str:
    """Return the reason why TLS has failed if that is why an error was raised, otherwise ""."""
    while error is not None and not isinstance(error, ssl.SSLError):
        error = error.__cause__ or error.__context__
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted ({error.verify_message}; SSL_CERT_FILE names trusted certificates)"
    return "" if error is None else f"TLS has failed ({error.reason or 'the connection ended'})"
