"""What is wrong where one side of a connection encrypts and the other does not; gRPC says "Socket closed" of both."""

import re
import socket
import ssl
from typing import Final, Literal

from gradewire._transport.endpoint import Endpoint

_TIMEOUT_S: Final = 1.0
_HOST_PORT: Final = re.compile(r"(?:ipv[46]:|dns:(?:///)?)?(?P<host>\[[^\]]+\]|[^\[\]/:]+):(?P<port>\d+)")
_NO_TLS: Final = ("WRONG_VERSION_NUMBER", "UNEXPECTED_EOF", "RECORD_LAYER", "HTTP_REQUEST")

Encryption = Literal["none", "tls", "tls with client certificate", "unknown"]


def encryption_at(address: str) -> Encryption:
    """Asks an address how it encrypts; takes up to two seconds where it is slow.

    "unknown" stands for an address that does not answer, or that only gRPC can resolve.
    """
    if (found := _HOST_PORT.fullmatch(address)) is None:
        return "unknown"
    try:
        return _asked(found["host"].strip("[]"), int(found["port"]))
    except ssl.SSLError as error:
        reason = error.reason or ""
        if "CERTIFICATE_REQUIRED" in reason or "HANDSHAKE_FAILURE" in reason:
            return "tls with client certificate"
        return "none" if any(sign in reason for sign in _NO_TLS) else "unknown"
    except OSError:
        return "unknown"


def _asked(host: str, port: int) -> Encryption:
    # Nothing is sent over it and nothing read of it is used, so nobody has to be trusted.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    with socket.create_connection((host, port), _TIMEOUT_S) as plain, context.wrap_socket(plain) as encrypted:
        encrypted.settimeout(_TIMEOUT_S)
        # HTTP/2 begins with a word of the server's; gRPC's closes where it wants a certificate and gets none.
        return "tls" if encrypted.recv(1) else "tls with client certificate"


def mismatch(endpoint: Endpoint, server: Encryption) -> str:
    """What differs between how a client and its server encrypt, and what to change; "" where nothing is known to."""
    at, tls = endpoint.address, endpoint.tls
    if tls is None and server not in {"none", "unknown"}:
        return f"{at} speaks TLS and this client does not: give tls=gradewire.Tls(…) (the command: --tls-ca FILE)"
    if tls is not None and server == "none":
        return f"{at} does not speak TLS and this client does: leave out tls= (the command: --tls-…)"
    if tls is not None and server == "tls with client certificate" and tls.certificate_chain is None:
        return (
            f"{at} asks for a certificate of the client: give Tls(certificate_chain=…, private_key=…) (the command: "
            "--tls-cert and --tls-key)"
        )
    if tls is not None and server == "tls with client certificate":
        return (
            f"{at} closes the connection at this client's certificate: give one that an authority of the server's "
            "tls_client_ca signed, as Tls(certificate_chain=…, private_key=…) (the command: --tls-cert and --tls-key)"
        )
    return ""
