"""The errors of the library, as one tree.

```
GradewireError
├── TransportError              the call was right, but no answer came; trying again may help
│   ├── ServerUnreachable       nobody answers at the address, or the server is shutting down (also a ConnectionError)
│   ├── DeadlineExceeded        not done within deadline_s (also a TimeoutError)
│   ├── Overloaded              the server, or the queue of submit(), is full
│   └── ServerFault             a defect of the server, or another program at the address
├── RequestError                the same call fails again until something is changed
│   ├── InvalidRequest          the message names the argument (also a ValueError)
│   ├── NotReady                nothing of what the call asks for is loaded there
│   └── AccessDenied            the token is missing, wrong, or not allowed to do this
├── InconsistentReplies         several servers at one address do not agree on metric version or model
├── ClientClosed                the client was closed before
├── ForkedClientError           gRPC was loaded before this process was forked, or the call began before the fork
└── MissingExtra                a part that is installed separately (also an ImportError)
```

A bad item never raises: it is answered with a status (`gradewire.Status`). Every message says what to do next.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self


class GradewireError(Exception):
    """Root of the tree; catch it to catch all."""


class TransportError(GradewireError):
    """The call was right, but no answer came.

    Attributes:
        retry_after_s: Seconds after which the server asks to come back; None where it did not say.
        may_pass: Whether the same call may be answered later without anything being changed; False where the address
            cannot be right (no such host, no TLS there, another program).
    """

    may_pass: bool = True

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class ServerUnreachable(TransportError, ConnectionError):  # noqa: N818 - reads as what happened, like httpx's names
    """Nobody answers at the address, or the server is shutting down."""


class DeadlineExceeded(TransportError, TimeoutError):  # noqa: N818 - gRPC's word for it
    """The call was not done within its deadline."""


class Overloaded(TransportError):  # noqa: N818 - reads as what happened, like httpx's names
    """The server takes no more work now, or too many submitted items wait already.

    Attributes:
        of_quota: Whether the tenant's quota is used up: none of the server's processes takes the call before
            `retry_after_s`.
    """

    of_quota = False


class ServerFault(TransportError):  # noqa: N818 - reads as what happened, like httpx's names
    """A defect of the server, or a server that is not gradewire."""

    may_pass = False


class RequestError(GradewireError):
    """The same call will fail again until something is changed."""


class InvalidRequest(RequestError, ValueError):  # noqa: N818 - gRPC's word for it
    """An argument is wrong; the message names it."""


class NotReady(RequestError):  # noqa: N818 - reads as what happened, like httpx's names
    """Nothing of what the call asks for is loaded; the message says what is, and how to get the rest."""


class AccessDenied(RequestError):  # noqa: N818 - reads as what happened, like httpx's names
    """The server does not know the token, or does not allow it this call."""


class InconsistentReplies(GradewireError):  # noqa: N818 - reads as what happened, like httpx's names
    """Different metric versions or models answered parts of one call, so their scores must not be mixed."""


class ClientClosed(GradewireError):  # noqa: N818 - reads as what happened, like httpx's names
    """The client was closed; make a new one."""


class ForkedClientError(GradewireError):
    """gRPC was loaded before this process was forked, or what is waited for began before the fork."""


class MissingExtra(GradewireError, ImportError):  # noqa: N818 - reads as what happened, like httpx's names
    """A part of gradewire is not installed; the message holds the command that installs it."""

    @classmethod
    def of(cls, what: str, error: ImportError) -> Self:
        """Return the error where `what` cannot be imported; an error in our own packages is raised as it is."""
        package = (error.name or "").partition(".")[0]
        if isinstance(error, GradewireError) or package.startswith("gradewire"):
            raise error
        return cls(f"{what} needs {error.name}, which is not installed: pip install 'gradewire[server]'")


@contextmanager
def needed_by(user: str, install: str = "") -> Iterator[None]:
    """Raise MissingExtra, with what pip is to install for a user of them, where imports within the context fail."""
    try:
        yield
    except ImportError as error:
        package = install or (error.name or "").partition(".")[0]
        raise MissingExtra(f"{user} needs {error.name} ({error}): pip install '{package}'") from error
