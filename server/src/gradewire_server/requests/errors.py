"""All errors of requests, whichever way they came.

RequestError
 ├─ InvalidRequestError     the request itself is at fault; names the field and its index
 ├─ OverloadedError         too much in flight; says when to come back
 │   └─ QuotaExceededError  the tenant has sent as much text as it may; says when it may again
 ├─ NothingLoadedError      nothing of what the request asks for is loaded; says what is
 ├─ DeadlineExceededError   the request did not finish in time
 ├─ ModelReplacedError      a stream's model was replaced under it; the rest can be sent again on another stream
 └─ SetUnavailableError     the store does not say which corpus a set has, and the request insists on one

A failure of one item or of one metric is no error of the request: it is a status of the result.
"""

from gradewire_server.domain.items import MAX_MESSAGE_CHARACTERS, shortened


class RequestError(Exception):
    """Base of all errors of requests; its message is meant for the caller, and cut: it travels among the headers."""

    def __init__(self, message: str) -> None:
        super().__init__(shortened(message, MAX_MESSAGE_CHARACTERS))


class InvalidRequestError(RequestError):
    """The request cannot be understood or asks for too much; `field` is the path of the field at fault."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field


class OverloadedError(RequestError):
    """Too much is in flight; nothing of the request was begun. `retry_after_s`: when to come back."""

    def __init__(self, message: str, *, retry_after_s: float) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class QuotaExceededError(OverloadedError):
    """The caller's tenant has sent as much text as it may for now."""


class NothingLoadedError(RequestError):
    """No metric of the request has the model that it needs."""


class DeadlineExceededError(RequestError):
    """The request did not finish within its deadline."""


class ModelReplacedError(RequestError):
    """A model that a stream named in its provenance has been replaced by another; what was sent stands."""


class SetUnavailableError(RequestError):
    """A request insists on a set's corpus, and the store does not answer."""
