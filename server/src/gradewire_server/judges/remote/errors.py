"""What can go wrong with a judge behind a server, and what callers are told."""

from enum import StrEnum
from typing import Final

from gradewire_server.domain.items import Failure, Status


class RemoteFault(StrEnum):
    """Kinds of errors; also the reasons of the counter of retries."""

    RATE_LIMITED = "rate_limited"
    UNREACHABLE = "unreachable"
    SERVER_ERROR = "server_error"
    LATE = "late"
    REFUSED = "refused"
    REJECTED = "rejected"
    TOO_LONG = "too_long"
    UNREADABLE = "unreadable"


RETRIED = frozenset({RemoteFault.RATE_LIMITED, RemoteFault.UNREACHABLE, RemoteFault.SERVER_ERROR})
"""Requests that are sent again. A server that was too slow once is not asked the same again."""
AWAY = frozenset({RemoteFault.UNREACHABLE, RemoteFault.SERVER_ERROR, RemoteFault.LATE, RemoteFault.REFUSED})
"""The server is taken to be away until a request is answered again."""
OF_THE_REQUEST = frozenset({RemoteFault.REJECTED, RemoteFault.TOO_LONG, RemoteFault.UNREADABLE})
"""The request or its answer is to blame, and others may go well: of several questions in it, it may be one."""
ADDRESS_SETTING: Final = "judge_url (--judge-url)"
MODEL_SETTING: Final = "judge_remote_model (--judge-remote-model)"
KEY_SETTING: Final = "judge_token (gradewire score: --judge-key-env)"


class RemoteError(Exception):
    """A request to a judge's server went wrong.

    Attributes:
        kind: What went wrong.
        failure: For callers: says what to do, and nothing that the server said.
        retry_after_s: What the server asks to wait.
    """

    def __init__(self, kind: RemoteFault, failure: Failure, *, retry_after_s: float | None = None) -> None:
        super().__init__(failure.message)
        self.kind = kind
        self.failure = failure
        self.retry_after_s = retry_after_s


def rate_limited(retry_after_s: float | None) -> RemoteError:
    """The server wants fewer requests."""
    message = "the judge's server takes no more requests for now; try again later"
    return _error(RemoteFault.RATE_LIMITED, Status.UNAVAILABLE, message, retry_after_s)


def unreachable(address: str) -> RemoteError:
    """No connection, or one that broke."""
    message = f"{server_at(address)} cannot be reached: see {ADDRESS_SETTING}, or try again"
    return _error(RemoteFault.UNREACHABLE, Status.UNAVAILABLE, message)


def server_error(retry_after_s: float | None = None) -> RemoteError:
    """The server failed."""
    message = "the judge's server failed; try again"
    return _error(RemoteFault.SERVER_ERROR, Status.UNAVAILABLE, message, retry_after_s)


def late(address: str, timeout_s: float) -> RemoteError:
    """No answer within the time that one request has."""
    message = f"{server_at(address)} did not answer within {timeout_s:g} s (judge_timeout_s); try again"
    return _error(RemoteFault.LATE, Status.UNAVAILABLE, message)


def refused(what_to_do: str) -> RemoteError:
    """The server will not do this until its operator or ours changes something."""
    return _error(RemoteFault.REFUSED, Status.MODEL_UNAVAILABLE, what_to_do)


def rejected(status: int) -> RemoteError:
    """The server does not accept this request; it may accept others."""
    message = f"the judge's server rejects a request (status {status}); its words are in the log at level debug"
    return _error(RemoteFault.REJECTED, Status.INTERNAL, message)


def too_long(*, pictures: bool = False) -> RemoteError:
    """The prompt does not fit the model; with pictures it may be these that do not."""
    shown = "pictures, question, references" if pictures else "question, references"
    message = f"{shown} and instructions are too long for the judge"
    return _error(RemoteFault.TOO_LONG, Status.INVALID_INPUT, message)


def addressed() -> RemoteError:
    """The server takes a picture's bytes only."""
    message = "images: the judge's Triton takes bytes and no addresses: send data, or a data: URI"
    return _error(RemoteFault.REJECTED, Status.INVALID_INPUT, message)


def unreadable(what: str) -> RemoteError:
    """What the server answered is not a valid answer."""
    return _error(RemoteFault.UNREADABLE, Status.UNPARSABLE, f"the judge's server answered with {what}")


def server_at(address: str) -> str:
    """A judge's server by its address, which holds no key: `judge_url` takes none with a user or a query."""
    return f"the judge's server at {address}"


def _error(kind: RemoteFault, status: Status, message: str, retry_after_s: float | None = None) -> RemoteError:
    return RemoteError(kind, Failure(status, message, retry_after_s), retry_after_s=retry_after_s)


def says_too_long(text: str) -> bool:
    """Whether a server's words mean that a prompt exceeds the model's context (OpenAI, vLLM, llama.cpp, Triton)."""
    lowered = text[:4000].casefold()
    return any(
        words in lowered
        for words in (
            "context_length_exceeded",
            "maximum context length",
            "exceed_context_size",
            "exceeds the available context",
            "maximum model length",
            "max_model_len",
        )
    )
