"""Where a server is and how it is talked to: what of a connection can be pickled and carried over a fork."""

from dataclasses import dataclass, field

from gradewire.errors import InvalidRequest
from gradewire.tls import Tls


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Address and credentials of a server.

    Attributes:
        address: HOST:PORT, or any name that gRPC resolves (`dns:///name:50051` spreads over all addresses).
        token: Sent as bearer token with every call.
        tls: How to encrypt; None: no encryption.
        connections: How many to spread calls over; 0: one, and as many as the processes of the server need.

    Raises:
        InvalidRequest: An argument is of a wrong type, or the token has characters that no header holds; gRPC itself
            would say so at the first call only, or never.
    """

    address: str
    token: str | None = field(default=None, repr=False)
    tls: Tls | None = None
    connections: int = 0

    def __post_init__(self) -> None:
        wanted = (
            ("address", self.address, str, "HOST:PORT"),
            ("token", self.token, str | None, "a string"),
            ("tls", self.tls, Tls | None, "gradewire.Tls(…)"),
            ("connections", self.connections, int, "a number, 0 to leave it to the client"),
        )
        for name, value, kind, hint in wanted:
            if not isinstance(value, kind):
                raise InvalidRequest(f"{name} is a {type(value).__name__}: give {hint}")
        if self.connections < 0:
            raise InvalidRequest(f"connections is {self.connections}: give 0 or more")
        token = self.token or ""
        if token != token.strip() or not (token.isascii() and token.isprintable()):
            raise InvalidRequest(
                "token (of the command: --token, GRADEWIRE_TOKEN) has a line end, a blank at an end, or a character "
                "that no token has: give it as the server has it; of a file, without the line end"
            )
