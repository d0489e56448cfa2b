"""Errors that fail a whole request.

RequestError
 ├─ InvalidRequestError     the request is invalid; the message names the field
 ├─ OverloadedError         too much is in flight; retry after the given time
 │   └─ QuotaExceededError  the tenant's text quota is used up; retry after the given time
 ├─ NothingLoadedError      no model that the request needs is loaded
 ├─ DeadlineExceededError   the request did not finish in time
 ├─ ModelReplacedError      a stream's model was replaced; send the remaining items on a new stream
 └─ SetUnavailableError     the request needs a set's corpus, but the store does not answer

If only one item or metric fails, the request succeeds, and the failure is the status of a result.
"""

from gradewire_server.domain.items import MAX_MESSAGE_CHARACTERS, shortened


class RequestError(Exception):
    """The base class of request errors. The message is for the caller. It is shortened because a header carries it."""

    def __init__(self, message: str) -> None:
        super().__init__(shortened(message, MAX_MESSAGE_CHARACTERS))


class InvalidRequestError(RequestError):
    """A request that is invalid or too large. `field` is the path of the field at fault."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field


class OverloadedError(RequestError):
    """A refusal because too much work is in flight. No work was started. Retry after `retry_after_s`."""

    def __init__(self, message: str, *, retry_after_s: float) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class QuotaExceededError(OverloadedError):
    """A refusal because the tenant's text quota is used up for now."""


class NothingLoadedError(RequestError):
    """A request whose metrics all fail because their models are unavailable."""


class DeadlineExceededError(RequestError):
    """A request that did not finish within its deadline."""


class ModelReplacedError(RequestError):
    """A stream whose model was replaced. Results that were already sent remain valid."""


class SetUnavailableError(RequestError):
    """A request that needs a set's corpus while the store does not answer."""
