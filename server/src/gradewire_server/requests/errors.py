"""Errors that fail a whole request. If only some items or metrics fail, the failures are results."""

from gradewire_server.domain.items import MAX_MESSAGE_CHARACTERS, shortened


class RequestError(Exception):
    """The base class of request errors. The message is for the caller."""

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
    """A refusal because the tenant's text quota is used up."""


class NothingLoadedError(RequestError):
    """A request that failed because none of its models is available."""


class DeadlineExceededError(RequestError):
    """A request that did not finish before its deadline."""


class ModelReplacedError(RequestError):
    """A stream that ended because a model was replaced. Results that were already sent remain valid."""


class SetUnavailableError(RequestError):
    """A request that failed because the store with the set's corpus does not answer."""
