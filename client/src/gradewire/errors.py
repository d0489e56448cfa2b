"""The library's exceptions, in one hierarchy.

```
GradewireError
├── TransportError              the server did not answer a valid call; a retry may help
│   ├── ServerUnreachable       no server answers, or the server is shutting down (also a ConnectionError)
│   ├── DeadlineExceeded        the call did not finish within deadline_s (also a TimeoutError)
│   ├── Overloaded              the server, or the queue of submit(), is full
│   └── ServerFault             a defect of the server, or another program at the address
├── RequestError                the same call fails again until you change something
│   ├── InvalidRequest          an argument is wrong; the message says which one (also a ValueError)
│   ├── NotReady                no metric of the call can run, because a model is missing
│   └── AccessDenied            the token is missing or wrong, or lacks a permission
├── InconsistentReplies         servers at one address disagree on a metric's version or model
├── ClientClosed                the client is closed
├── ForkedClientError           gRPC was loaded, or the call started, before this process was forked
└── MissingExtra                an optional package is not installed (also an ImportError)
```

A bad item never raises: its result has a status (`gradewire.Status`). Every message says what to do next.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self


class GradewireError(Exception):
    """The base class of all errors that this library raises."""


class TransportError(GradewireError):
    """The server did not answer a valid call.

    Attributes:
        retry_after_s: Seconds to wait before a retry; None if the server did not name a time.
        may_pass: True if the same call may succeed later; False if a retry cannot help, for example at a wrong address.
    """

    may_pass: bool = True

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class ServerUnreachable(TransportError, ConnectionError):  # noqa: N818 - named after the event
    """No server answers at the address, or the server is shutting down."""


class DeadlineExceeded(TransportError, TimeoutError):  # noqa: N818 - gRPC's name
    """The call did not finish within its deadline."""


class Overloaded(TransportError):  # noqa: N818 - named after the event
    """The server is busy, or too many submitted items are pending.

    Attributes:
        of_quota: True if the tenant's quota is used up. No server process accepts the call until `retry_after_s`
            seconds have passed.
    """

    of_quota = False


class ServerFault(TransportError):  # noqa: N818 - named after the event
    """The server has a defect, or another program answers at the address."""

    may_pass = False


class RequestError(GradewireError):
    """The request is at fault. The same call will fail again until you change something."""


class InvalidRequest(RequestError, ValueError):  # noqa: N818 - gRPC's name
    """An argument is wrong; the message says which one."""


class NotReady(RequestError):  # noqa: N818 - named after the event
    """No metric of the call can run, usually because a model is missing. The message says how to get the model."""


class AccessDenied(RequestError):  # noqa: N818 - named after the event
    """The server does not know the token, or the token lacks a permission."""


class InconsistentReplies(GradewireError):  # noqa: N818 - named after the event
    """Servers used different metric versions or models for one call, so the scores are not comparable."""


class ClientClosed(GradewireError):  # noqa: N818 - named after the event
    """The client was closed; make a new one."""


class ForkedClientError(GradewireError):
    """gRPC was loaded, or the call started, before this process was forked."""


class MissingExtra(GradewireError, ImportError):  # noqa: N818 - named after the event
    """An optional package is not installed. The message contains the command that installs it."""

    @classmethod
    def of(cls, what: str, error: ImportError) -> Self:
        """Return the error for a failed import in `what`. Re-raise import errors of gradewire's packages."""
        package = (error.name or "").partition(".")[0]
        if isinstance(error, GradewireError) or package.startswith("gradewire"):
            raise error
        return cls(f"{what} needs {error.name}, which is not installed. Run: pip install 'gradewire[server]'")


@contextmanager
def needed_by(user: str, install: str = "") -> Iterator[None]:
    """Turn an ImportError in the `with` block into MissingExtra, which says that `user` needs the package `install`."""
    try:
        yield
    except ImportError as error:
        package = install or (error.name or "").partition(".")[0]
        missing = MissingExtra(f"{user} needs {error.name} ({error}). Run: pip install '{package}'")
        # An installed package that fails to import has a reason to show.
        raise missing from (None if isinstance(error, ModuleNotFoundError) else error)
