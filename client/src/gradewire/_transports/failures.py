"""Translate failed gRPC calls into gradewire's errors."""

import re
import socket
import ssl
from typing import Final, Literal

import grpc.aio

from gradewire import errors
from gradewire.transport import Endpoint
from gradewire_proto.wire_rules import PUSHBACK_KEY, QUOTA_KEY

_CODES: dict[str, tuple[type[errors.TransportError | errors.RequestError], str]] = {
    "UNAVAILABLE": (
        errors.ServerUnreachable,
        "no gradewire server answers at {at}{said}. Start a server with 'gradewire serve', or check the address",
    ),
    "DEADLINE_EXCEEDED": (
        errors.DeadlineExceeded,
        "{at} did not finish in time{said}. Use a larger deadline_s (command: --deadline-s) or fewer items",
    ),
    "RESOURCE_EXHAUSTED": (
        errors.Overloaded,
        "{at} is busy{said}. Try again later, or send fewer calls at a time",
    ),
    "CANCELLED": (
        errors.Overloaded,
        "{at} dropped the call without reading it{said}, because the server has too many calls. Try again later",
    ),
    "UNIMPLEMENTED": (
        errors.ServerFault,
        "{at} does not know this call{said}. Check that the server is a gradewire server, and upgrade the server",
    ),
    "INVALID_ARGUMENT": (errors.InvalidRequest, "{at} does not accept the request{said}"),
    "FAILED_PRECONDITION": (errors.NotReady, "{at} is not ready for this call{said}"),
    "UNAUTHENTICATED": (
        errors.AccessDenied,
        "{at} rejects the call{said}. Give the right token= (command: --token)",
    ),
    "PERMISSION_DENIED": (
        errors.AccessDenied,
        "{at} rejects the call{said}. Give a token= (command: --token) with this permission",
    ),
}
"""Errors and messages by gRPC code. Any other code means that the server has a defect."""


def error_for(code: str, details: str, address: str, *, retry_after_s: float | None = None) -> errors.GradewireError:
    """Return the error for a gRPC code and the server's details. Without an address, the details are the message."""
    said = f": {details.rstrip('.')}" if details else ""
    kind, text = _CODES.get(code, (errors.ServerFault, f"{{at}} failed ({code}){{said}}. Check the server's log"))
    message = text.format(at=address, said=said) if address else details
    return kind(message, retry_after_s=retry_after_s) if issubclass(kind, errors.TransportError) else kind(message)


_TIMEOUT_S: Final = 1.0
_HOST_PORT: Final = re.compile(r"(?:ipv[46]:|dns:(?:///)?)?(?P<host>\[[^\]]+\]|[^\[\]/:]+):(?P<port>\d+)")
_HTTP2: Final = "h2"
_HTTPS: Final = (
    "{at} speaks HTTPS instead of gRPC, perhaps for the HTTP API: give the port that `gradewire serve` prints when it "
    "is ready"
)
_NO_TLS: Final = ("WRONG_VERSION_NUMBER", "UNEXPECTED_EOF", "RECORD_LAYER", "HTTP_REQUEST")

Encryption = Literal["none", "tls", "tls with client certificate", "https", "unknown"]


def encryption_at(address: str) -> Encryption:
    """Find out, within about two seconds, which encryption a server uses.

    "https" means TLS without HTTP/2, which gRPC needs. "unknown" means that nothing answers at the address, or that
    only gRPC can resolve the address.
    """
    if (found := _HOST_PORT.fullmatch(address)) is None:
        return "unknown"
    try:
        return _probed(found["host"].strip("[]"), int(found["port"]))
    except ssl.SSLError as error:
        reason = error.reason or ""
        if "CERTIFICATE_REQUIRED" in reason or "HANDSHAKE_FAILURE" in reason:
            return "tls with client certificate"
        if "no application protocol" in str(error):  # Python has no reason for this alert
            return "https"
        return "none" if any(sign in reason for sign in _NO_TLS) else "unknown"
    except OSError:
        return "unknown"


def _probed(host: str, port: int) -> Encryption:
    # The probe neither sends nor uses data, so it need not verify the certificate.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols([_HTTP2])
    with socket.create_connection((host, port), _TIMEOUT_S) as plain, context.wrap_socket(plain) as encrypted:
        if encrypted.selected_alpn_protocol() != _HTTP2:
            return "https"
        encrypted.settimeout(_TIMEOUT_S)
        # An HTTP/2 server sends first. A gRPC server that requires a client certificate closes the connection instead.
        return "tls" if encrypted.recv(1) else "tls with client certificate"


def mismatch(endpoint: Endpoint, server: Encryption) -> str:
    """Return a message about a difference in encryption between client and server, or "" if no difference is known."""
    at, tls = endpoint.address, endpoint.tls
    if server == "https":
        message = _HTTPS.format(at=at)
        return message if tls else f"{message}, and tls=gradewire.Tls(…) (command: --tls-ca FILE) if that port uses TLS"
    if tls is None and server not in {"none", "unknown"}:
        return f"{at} uses TLS, but this client does not: give tls=gradewire.Tls(…) (command: --tls-ca FILE)"
    if tls is not None and server == "none":
        return f"{at} does not use TLS, but this client does: leave out tls= (command: --tls-…)"
    if tls is not None and server == "tls with client certificate" and tls.certificate_chain is None:
        return (
            f"{at} requires a client certificate: give Tls(certificate_chain=…, private_key=…) "
            "(command: --tls-cert and --tls-key)"
        )
    if tls is not None and server == "tls with client certificate":
        return (
            f"{at} rejects this client's certificate: give Tls(certificate_chain=…, private_key=…) (command: "
            "--tls-cert and --tls-key) with a certificate from an authority in the server's tls_client_ca"
        )
    return ""


# gRPC reports these details instead of the real status if a stream ends while the client writes a message.
CUT_WHILE_WRITING = "Internal error from Core"
# Before the server's first answer, these details mean a wrong address (no TLS, a wrong certificate, a wrong protocol,
# or no such host). Later, a restart behind a load balancer or a name server can also cause these details.
_LASTING = re.compile("SSL_ERROR_SSL|Hostname Verification Check failed|Expected SETTINGS frame|Domain name not found")
# Messages for failures that only different settings can fix, by a part of gRPC's details.
_CAUSES = {
    "CERTIFICATE_VERIFY_FAILED": "{at}: this client does not trust the server's certificate: give the path of "
    "the issuing authority's certificate as Tls(root_certificates=…) (command: --tls-ca FILE)",
    "Failed to create security handshaker": "{at}: the files in tls= are unusable: root_certificates must be PEM, and "
    "private_key must match certificate_chain (command: --tls-ca, --tls-key, --tls-cert)",
    "http1.x server": "{at} speaks HTTP instead of gRPC, perhaps for the HTTP API, /metrics or /healthz: give the port "
    "that `gradewire serve` prints when it is ready",
    "missing selected ALPN property": _HTTPS,
    "NO_APPLICATION_PROTOCOL": _HTTPS,
}
# gRPC rejects a large message with the code RESOURCE_EXHAUSTED, although no server is overloaded.
_TOO_LARGE = re.compile("message larger than max", re.IGNORECASE)
# gRPC reports these details if the server ends the connection at once, perhaps because only one side encrypts.
_CUT_OFF = re.compile("Socket closed|reset by peer|End of TCP stream|Broken pipe|SSL_ERROR|handshake", re.IGNORECASE)


def translated(error: grpc.aio.AioRpcError, address: str, *, has_answered: bool) -> errors.GradewireError:
    """Return the error for a failed gRPC call. If the server has never answered, the address may be wrong."""
    if error.details() == CUT_WHILE_WRITING:
        return errors.ServerUnreachable(f"{address} ended the stream while items were sent: check the server's log")
    details = error.details() or ""
    if _TOO_LARGE.search(details):
        return errors.InvalidRequest(f"{address}: gRPC rejects a message of this call: {details}")
    for sign, cause in _CAUSES.items():
        if sign in details and not has_answered:
            wrong = errors.ServerUnreachable(cause.format(at=address))
            wrong.may_pass = False
            return wrong
    pushback_ms = next((value for key, value in error.trailing_metadata() if key == PUSHBACK_KEY), "")
    retry_after_s = int(pushback_ms) / 1000 if str(pushback_ms).isdecimal() else None
    failure = error_for(error.code().name, details, address, retry_after_s=retry_after_s)
    if isinstance(failure, errors.Overloaded):
        failure.of_quota = any(key == QUOTA_KEY for key, _ in error.trailing_metadata())
    if isinstance(failure, errors.ServerUnreachable) and not has_answered and _LASTING.search(details):
        failure.may_pass = False
    return failure


def is_cut_off(failure: errors.GradewireError) -> bool:
    """Return True if the server ended the connection at once, perhaps because only one side encrypts."""
    return isinstance(failure, errors.ServerUnreachable) and _CUT_OFF.search(str(failure)) is not None
