"""Turns gRPC's status codes into the errors of this package; by name, so that it needs no gRPC."""

from gradewire import errors

_TRANSPORT: dict[str, tuple[type[errors.TransportError], str]] = {
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
}
_REQUEST: dict[str, tuple[type[errors.RequestError], str]] = {
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


def error_for(code: str, details: str, address: str, *, retry_after_s: float | None = None) -> errors.GradewireError:
    """The error for a code.

    Args:
        code: Name of the gRPC code.
        details: What the server said.
        address: Where the call went, for the message.
        retry_after_s: Seconds after which the server asks to come back; None where it did not say.
    """
    said = f": {details.rstrip('.')}" if details else ""
    if code in _REQUEST:
        refusal, text = _REQUEST[code]
        return refusal(text.format(at=address, said=said))
    otherwise = (errors.ServerFault, f"{{at}} failed ({code}){{said}}. Its log says more")
    failure, text = _TRANSPORT.get(code, otherwise)
    return failure(text.format(at=address, said=said), retry_after_s=retry_after_s)
