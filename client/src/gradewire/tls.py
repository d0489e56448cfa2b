"""Encryption settings of a client."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """How to encrypt, and whom to believe; all files are PEM.

    Attributes:
        root_certificates: Authorities to believe; None: those that gRPC brings.
        certificate_chain: The client's own certificate, where the server asks for one.
        private_key: Its key.
        server_name: Expected name in the server's certificate where it is not the address's.
    """

    root_certificates: Path | None = None
    certificate_chain: Path | None = None
    private_key: Path | None = None
    server_name: str | None = None
