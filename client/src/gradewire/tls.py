"""Encryption settings of a client."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """How to encrypt, and which certificates to trust; all files are PEM.

    Attributes:
        root_certificates: Certificate authorities to trust; None: gRPC's own list.
        certificate_chain: The client's own certificate, where the server asks for one.
        private_key: The key of that certificate.
        server_name: Name in the server's certificate; None: the host of the address.
    """

    root_certificates: Path | None = None
    certificate_chain: Path | None = None
    private_key: Path | None = None
    server_name: str | None = None
