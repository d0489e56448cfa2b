"""The errors of requests.

RequestError
 ├─ InvalidRequestError     the request is invalid; names the field and its index
 ├─ OverloadedError         too much is in flight; has the time to retry after
 │   └─ QuotaExceededError  the tenant's quota of text is used up; has the time to retry after
 ├─ NothingLoadedError      no model that the request needs is loaded
 ├─ DeadlineExceededError   the request did not finish in time
 ├─ ModelReplacedError      a stream's model was replaced; send the rest on a new stream
 └─ SetUnavailableError     the request requires a set's corpus, and the store does not answer

A failure of one item or of one metric is not an error of the request but the status of a result.
"""

from gradewire_server.domain.items import MAX_MESSAGE_CHARACTERS, shortened


class RequestError(Exception):
    """The base of all errors of requests; the message is for the caller, and cut, since it is sent as a header."""

    def __init__(self, message: str) -> None:
        super().__init__(shortened(message, MAX_MESSAGE_CHARACTERS))


class InvalidRequestError(RequestError):
    """An invalid or too large request; `field` is the path of the wrong field."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field


class OverloadedError(RequestError):
    """A refusal because too much is in flight; nothing was started. Retry after `retry_after_s`."""

    def __init__(self, message: str, *, retry_after_s: float) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class QuotaExceededError(OverloadedError):
    """A refusal because the tenant's quota of text is used up for now."""


class NothingLoadedError(RequestError):
    """A request of which no metric has the model that it needs."""


class DeadlineExceededError(RequestError):
    """A request that did not finish within its deadline."""


class ModelReplacedError(RequestError):
    """A stream whose model, named in its provenance, was replaced; results already sent remain valid."""


class SetUnavailableError(RequestError):
    """A request that requires a set's corpus while the store does not answer."""
