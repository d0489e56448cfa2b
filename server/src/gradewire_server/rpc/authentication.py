"""Authentication by bearer tokens, in constant time; and access to /metrics, which tell of all tenants together."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Final

from gradewire_proto.wire_rules import token_of
from gradewire_server.domain.caller import LOCAL, Caller, Scope
from gradewire_server.rpc.errors import UnauthenticatedError
from gradewire_server.tenants.tokens import TokensFile, TokenTable

_MAX_PEERS: Final = 4096


class Authentication:
    """Checks what a call says of its caller; may be asked from any thread.

    Args:
        tokens: Each lets a call in that may do everything, in the server's own namespace.
        file: Further tokens, each of a tenant. Without tokens and without a file every call is let in.
    """

    def __init__(self, tokens: Sequence[str] = (), *, file: TokensFile | None = None) -> None:
        self._own = TokenTable({sha256(token.encode()).digest(): LOCAL for token in tokens})
        self._file = file

    @property
    def is_open(self) -> bool:
        """Whether every call is let in."""
        return self._file is None and not self._own

    def check(self, authorization: str, peer: str) -> Caller:
        """Who a call comes from.

        Args:
            authorization: The metadata value of that name; "" where there is none.
            peer: Address of the connection as gRPC writes it, ``ipv4:127.0.0.1:50514``.

        Raises:
            UnauthenticatedError: A token is needed, and this is none.
        """
        if self.is_open:
            return _nameless(peer)
        given = token_of(authorization)
        if self._own.find(given) is not None:
            return _nameless(peer)
        caller = self._file.table.find(given) if self._file is not None else None
        if caller is None:
            raise UnauthenticatedError("metadata authorization: 'Bearer TOKEN' with a token of this server is needed")
        return caller


@lru_cache(_MAX_PEERS)
def _nameless(peer: str) -> Caller:
    """A caller that only its host tells from others."""
    return Caller(peer.rpartition(":")[0])


def refusal_of_metrics(
    authentication: Authentication | None, authorization: str
) -> tuple[int, Mapping[str, str]] | None:
    """The HTTP status and the JSON to refuse a request with; None where it is let in.

    Args:
        authentication: Knows the tokens; None: everybody is let in.
        authorization: The header of that name; empty where there is none.
    """
    if authentication is None:
        return None
    try:
        caller = authentication.check(authorization, "")
    except UnauthenticatedError:
        return 401, {"error": "the header Authorization: Bearer TOKEN with a token of this server is needed"}
    if Scope.ADMIN not in caller.scopes:
        return 403, {"error": f"metrics need a token with the scope {Scope.ADMIN}: they tell of all tenants"}
    return None
