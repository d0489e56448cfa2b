"""Errors that fail a whole request.

RequestError
 ├─ InvalidRequestError     the request is invalid; the message names the field
 ├─ OverloadedError         too much work is in progress; try again after the given time
 │   └─ QuotaExceededError  the tenant's text quota is used up; try again after the given time
 ├─ NothingLoadedError      no model that the request needs is loaded
 ├─ DeadlineExceededError   the request did not finish in time
 ├─ ModelReplacedError      a stream's model was replaced; send the remaining items on a new stream
 └─ SetUnavailableError     the request needs a set's corpus, but the store does not answer

If only some items or metrics fail, the request succeeds, and the failures are results.
"""

from gradewire_server.domain.items import MAX_MESSAGE_CHARACTERS, shortened


class RequestError(Exception):
    """The base class of request errors. The message is for the caller and is cut to fit into a header."""

    def __init__(self, message: str) -> None:
        super().__init__(shortened(message, MAX_MESSAGE_CHARACTERS))


class InvalidRequestError(RequestError):
    """A request that is invalid or too large. `field` is the path of the invalid field."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field


class OverloadedError(RequestError):
    """A refusal because too much work is in progress. No work was started."""

    def __init__(self, message: str, *, retry_after_s: float) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class QuotaExceededError(OverloadedError):
    """A refusal because the tenant's text quota is used up at present."""


class NothingLoadedError(RequestError):
    """A failed request because no model that it needs is available."""


class DeadlineExceededError(RequestError):
    """A request that did not finish before its deadline."""


class ModelReplacedError(RequestError):
    """A stream that ended because a model was replaced. Results that were already sent remain valid."""


class SetUnavailableError(RequestError):
    """A request that failed because the store with the set's corpus does not answer."""
