"""Failures of calls over gRPC, as errors of gradewire."""

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
        "no gradewire server answers at {at}{said}. Start one with `gradewire serve`, or check the address",
    ),
    "DEADLINE_EXCEEDED": (
        errors.DeadlineExceeded,
        "{at} did not finish in time{said}. Give a larger deadline_s (the command: --deadline-s) or fewer items",
    ),
    "RESOURCE_EXHAUSTED": (
        errors.Overloaded,
        "{at} takes no more work now{said}. Try again later, or send fewer calls at a time",
    ),
    "CANCELLED": (
        errors.Overloaded,
        "{at} dropped the call before reading it{said}: it has more calls than it can take in. Try again later",
    ),
    "UNIMPLEMENTED": (
        errors.ServerFault,
        "{at} does not know this call{said}. Is it a gradewire server, and new enough?",
    ),
    "INVALID_ARGUMENT": (errors.InvalidRequest, "{at} does not accept the request{said}"),
    "FAILED_PRECONDITION": (errors.NotReady, "{at} is not ready for this{said}. models() says what is there"),
    "UNAUTHENTICATED": (
        errors.AccessDenied,
        "{at} refuses the call{said}. Give the right token= (the command: --token)",
    ),
    "PERMISSION_DENIED": (
        errors.AccessDenied,
        "{at} refuses the call{said}. Give a token= (the command: --token) that is allowed to",
    ),
}
"""The one table from gRPC codes to errors, with what is said of them; any other code is a defect of the server."""


def error_for(code: str, details: str, address: str, *, retry_after_s: float | None = None) -> errors.GradewireError:
    """Return the error for a gRPC code and the server's text; without an address the message is that text alone."""
    said = f": {details.rstrip('.')}" if details else ""
    kind, text = _CODES.get(code, (errors.ServerFault, f"{{at}} failed ({code}){{said}}. Its log says more"))
    message = text.format(at=address, said=said) if address else details
    return kind(message, retry_after_s=retry_after_s) if issubclass(kind, errors.TransportError) else kind(message)


_TIMEOUT_S: Final = 1.0
_HOST_PORT: Final = re.compile(r"(?:ipv[46]:|dns:(?:///)?)?(?P<host>\[[^\]]+\]|[^\[\]/:]+):(?P<port>\d+)")
_NO_TLS: Final = ("WRONG_VERSION_NUMBER", "UNEXPECTED_EOF", "RECORD_LAYER", "HTTP_REQUEST")

Encryption = Literal["none", "tls", "tls with client certificate", "unknown"]


def encryption_at(address: str) -> Encryption:
    """Ask an address how it encrypts; takes up to two seconds where it is slow.

    "unknown" stands for an address that does not answer, or that only gRPC can resolve.
    """
    if (found := _HOST_PORT.fullmatch(address)) is None:
        return "unknown"
    try:
        return _probed(found["host"].strip("[]"), int(found["port"]))
    except ssl.SSLError as error:
        reason = error.reason or ""
        if "CERTIFICATE_REQUIRED" in reason or "HANDSHAKE_FAILURE" in reason:
            return "tls with client certificate"
        return "none" if any(sign in reason for sign in _NO_TLS) else "unknown"
    except OSError:
        return "unknown"


def _probed(host: str, port: int) -> Encryption:
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
    """Return how the encryption of a client and its server differs, and what to change; "" if it is not known to."""
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


# What gRPC reports in place of the real status when a stream ends while a message is being written.
CUT_WHILE_WRITING = "Internal error from Core"
# Where a server has not answered yet, the address cannot be right: no TLS there or not its certificate, another
# protocol, no such host. Later the same may come of a restart behind a balancer or a name server.
_LASTING = re.compile("SSL_ERROR_SSL|Hostname Verification Check failed|Expected SETTINGS frame|Domain name not found")
# What is wrong, by a word of gRPC's message; nothing but another setting helps.
_CAUSES = {
    "CERTIFICATE_VERIFY_FAILED": "{at}: its certificate is not signed by an authority that this client trusts: give it "
    "as Tls(root_certificates=…) (the command: --tls-ca FILE)",
    "Failed to create security handshaker": "{at}: the files of tls= cannot be used: root_certificates are in PEM, and "
    "private_key is the key of certificate_chain (the command: --tls-ca, --tls-key, --tls-cert)",
    "http1.x server": "{at} speaks HTTP and not gRPC: /metrics and /healthz have a port of their own; give the one "
    "that `gradewire serve` says it is ready on",
}
# Said by gRPC itself of either side, whatever the server's load.
_TOO_LARGE = re.compile("message larger than max", re.IGNORECASE)
# What gRPC says where the other side ends the connection at once: one of both may encrypt alone.
_CUT_OFF = re.compile("Socket closed|reset by peer|End of TCP stream|Broken pipe|SSL_ERROR|handshake", re.IGNORECASE)


def translated(error: grpc.aio.AioRpcError, address: str, *, has_answered: bool) -> errors.GradewireError:
    """Return the error that callers get; where no call has been answered, address or encryption may be wrong."""
    if error.details() == CUT_WHILE_WRITING:
        return errors.ServerUnreachable(f"{address} cut the stream while items were sent: look at its log")
    details = error.details() or ""
    if _TOO_LARGE.search(details):
        return errors.InvalidRequest(f"{address}: gRPC refuses a message of this call: {details}")
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
    """Return True if the other side has ended the connection at once: one of both may encrypt alone."""
    return isinstance(failure, errors.ServerUnreachable) and _CUT_OFF.search(str(failure)) is not None
