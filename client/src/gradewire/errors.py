"""The errors of the library, as one tree.

```
GradewireError
├── TransportError              the call was valid, but got no answer; a retry may help
│   ├── ServerUnreachable       no server at the address, or it is shutting down (also a ConnectionError)
│   ├── DeadlineExceeded        not done within deadline_s (also a TimeoutError)
│   ├── Overloaded              the server, or the queue of submit(), is full
│   └── ServerFault             a defect of the server, or another program at the address
├── RequestError                the same call fails again until you change something
│   ├── InvalidRequest          the message names the argument (also a ValueError)
│   ├── NotReady                nothing that the call needs is loaded
│   └── AccessDenied            the token is missing, wrong, or lacks a permission
├── InconsistentReplies         servers at one address disagree on metric version or model
├── ClientClosed                the client is closed
├── ForkedClientError           gRPC was loaded, or the call began, before this process was forked
└── MissingExtra                a part that is installed separately (also an ImportError)
```

A bad item never raises: its result has a status (`gradewire.Status`). Every message says what to do next.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self


class GradewireError(Exception):
    """The root of the tree: catch it to catch all."""


class TransportError(GradewireError):
    """The call was valid, but got no answer.

    Attributes:
        retry_after_s: Seconds after which the server wants a retry; None if it did not say.
        may_pass: True if the same call may succeed later; False if the address must be wrong (no such host, no TLS,
            another program).
    """

    may_pass: bool = True

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class ServerUnreachable(TransportError, ConnectionError):  # noqa: N818 - reads as what happened, like httpx's names
    """No server answers at the address, or it is shutting down."""


class DeadlineExceeded(TransportError, TimeoutError):  # noqa: N818 - gRPC's word for it
    """The call was not done within its deadline."""


class Overloaded(TransportError):  # noqa: N818 - reads as what happened, like httpx's names
    """The server is busy, or too many submitted items are pending.

    Attributes:
        of_quota: True if the tenant's quota is used up: no process of the server accepts the call before
            `retry_after_s`.
    """

    of_quota = False


class ServerFault(TransportError):  # noqa: N818 - reads as what happened, like httpx's names
    """A defect of the server, or a server of another program."""

    may_pass = False


class RequestError(GradewireError):
    """The same call will fail again until you change something."""


class InvalidRequest(RequestError, ValueError):  # noqa: N818 - gRPC's word for it
    """An argument is wrong; the message names it."""


class NotReady(RequestError):  # noqa: N818 - reads as what happened, like httpx's names
    """Nothing that the call needs is loaded. The message says what is loaded, and how to get the rest."""


class AccessDenied(RequestError):  # noqa: N818 - reads as what happened, like httpx's names
    """The server does not know the token, or the token lacks a permission."""


class InconsistentReplies(GradewireError):  # noqa: N818 - reads as what happened, like httpx's names
    """Different metric versions or models answered parts of one call, so their scores must not be mixed."""


class ClientClosed(GradewireError):  # noqa: N818 - reads as what happened, like httpx's names
    """The client was closed; make a new one."""


class ForkedClientError(GradewireError):
    """gRPC was loaded, or the call began, before this process was forked."""


class MissingExtra(GradewireError, ImportError):  # noqa: N818 - reads as what happened, like httpx's names
    """A part of gradewire is not installed. The message has the command that installs it."""

    @classmethod
    def of(cls, what: str, error: ImportError) -> Self:
        """Return the error for a failed import of `what`; raise an error in our own packages unchanged."""
        package = (error.name or "").partition(".")[0]
        if isinstance(error, GradewireError) or package.startswith("gradewire"):
            raise error
        return cls(f"{what} needs {error.name}, which is not installed. Run: pip install 'gradewire[server]'")


@contextmanager
def needed_by(user: str, install: str = "") -> Iterator[None]:
    """Raise MissingExtra, with a user and a package to install, if an import in the context fails."""
    try:
        yield
    except ImportError as error:
        package = install or (error.name or "").partition(".")[0]
        raise MissingExtra(f"{user} needs {error.name} ({error}). Run: pip install '{package}'") from error
