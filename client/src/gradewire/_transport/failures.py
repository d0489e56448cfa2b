"""What went wrong with a call over gRPC, as an error of gradewire."""

import re

import grpc.aio

from gradewire import errors
from gradewire._transport.status_codes import error_for
from gradewire_proto.conventions.metadata import PUSHBACK_KEY, QUOTA_KEY

# What gRPC reports in place of the real status when a stream ends while a message is being written.
_CUT_WHILE_WRITING = "Internal error from Core"
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
    """The error that callers get.

    Args:
        error: Of gRPC.
        address: Of the server, for messages.
        has_answered: Whether any call has been answered there; else the address or encryption may be wrong.
    """
    if error.details() == _CUT_WHILE_WRITING:
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
    """Whether the other side has ended the connection at once: one of both may encrypt alone."""
    return isinstance(failure, errors.ServerUnreachable) and _CUT_OFF.search(str(failure)) is not None
