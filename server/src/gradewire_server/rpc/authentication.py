"""Who calls, and who may: bearer tokens, compared in constant time."""

import hmac
from collections.abc import Sequence

from gradewire_proto.conventions.metadata import token_of
from gradewire_server.domain.caller import Caller
from gradewire_server.rpc.errors import UnauthenticatedError


class Authentication:
    """Checks what a call says of its caller.

    Args:
        tokens: Any one of them lets a call in; without tokens every call is let in.
    """

    def __init__(self, tokens: Sequence[str]) -> None:
        self._tokens = [token.encode() for token in tokens]

    def check(self, authorization: str, peer: str) -> Caller:
        """Who a call comes from.

        Args:
            authorization: The metadata value of that name; "" where there is none.
            peer: Address of the connection as gRPC writes it, ``ipv4:127.0.0.1:50514``.

        Raises:
            UnauthenticatedError: A token is needed, and this is none.
        """
        if not self._tokens:
            return Caller(peer.rpartition(":")[0])
        given = token_of(authorization).encode()
        # Every token is compared, whichever fits: the time taken tells nothing about any of them.
        if sum([hmac.compare_digest(given, token) for token in self._tokens]) == 0:
            raise UnauthenticatedError("metadata authorization: 'Bearer TOKEN' with a token of this server is needed")
        return Caller(peer.rpartition(":")[0])
