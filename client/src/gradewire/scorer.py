"""The client's methods over an engine in this process, without a server."""

from typing import Any, Self

from gradewire.async_client import AsyncClient, ClientBase
from gradewire.client import Client
from gradewire.errors import MissingExtra
from gradewire.transport import Transport

# No network is in the way, so a deadline only bounds the computing itself.
EMBEDDED_DEADLINE_S = 3600.0


class _Embedded(ClientBase):
    @classmethod
    def embedded(cls, **settings: Any) -> Self:
        """Makes a scorer; model and caches are opened at the first call.

        Args:
            **settings: As the server's, by name (docs/reference/settings.md): `model_repository`, `disk_directory`, …
                `deadline_s` is for calls that do not say their own, seconds.

        Raises:
            MissingExtra: The server's part is not installed.
            InvalidRequest: A setting is unknown or has a value that cannot be used.
        """
        deadline_s = settings.pop("deadline_s", EMBEDDED_DEADLINE_S)
        return cls(deadline_s=deadline_s, transport=embedded_transport(**settings))


class Scorer(_Embedded, Client):
    """Scores in this process; made by `Scorer.embedded()`, used like `Client`, with the same scores."""


class AsyncScorer(_Embedded, AsyncClient):
    """Scores in this process, on the caller's event loop; made by `AsyncScorer.embedded()`, used like `AsyncClient`."""


def embedded_transport(**settings: Any) -> Transport:
    """The transport of `Scorer.embedded`; raises as that does."""
    try:
        from gradewire._embedded.engine import EmbeddedTransport  # noqa: PLC0415 - loads the server's libraries

        return EmbeddedTransport(settings)
    except ImportError as error:
        raise MissingExtra.of("the embedded engine", error) from error
