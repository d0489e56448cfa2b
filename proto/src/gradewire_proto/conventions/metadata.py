"""Metadata that travel with a call."""

from typing import Final

AUTHORIZATION_KEY: Final = "authorization"
REQUEST_ID_KEY: Final = "x-request-id"
"""Id of the request, given by the caller or made by the server; it stands in the server's log."""
PEER_KEY: Final = "x-gradewire-peer"
"""Host that asks the HTTP gateway; believed of the server's own gateway alone, which calls over a private socket."""
PUSHBACK_KEY: Final = "grpc-retry-pushback-ms"
"""Trailing metadata that gRPC clients with a retry policy obey: wait so long, then try again."""
PROCESS_KEY: Final = "gradewire-process"
"""Trailing metadata of a server with several processes: INDEX/COUNT of the one that answered."""
STOPPING_KEY: Final = "gradewire-stopping"
"""Trailing metadata of such a process that stops: further calls are to go over new connections, which reach others."""
QUOTA_KEY: Final = "gradewire-quota"
"""Trailing metadata of a call that was refused for its tenant's quota, which is one for all processes."""

_BEARER: Final = "Bearer "


def bearer(token: str) -> str:
    """The value of `authorization` for a token."""
    return f"{_BEARER}{token}"


def token_of(authorization: str) -> str:
    """The token of a value of `authorization`; empty where it is no bearer token. The scheme may be in any case."""
    scheme, token = authorization[: len(_BEARER)], authorization[len(_BEARER) :]
    return token if scheme.lower() == _BEARER.lower() else ""
