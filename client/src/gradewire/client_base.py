"""What both clients are made with."""

from collections.abc import Callable
from dataclasses import dataclass

from gradewire._calls.arguments import check_deadline, check_most
from gradewire._calls.client_calls import ClientCalls
from gradewire._calls.submit import MAX_PENDING_BYTES, MAX_PENDING_ITEMS
from gradewire._transport.connect import connect
from gradewire._transport.endpoint import Endpoint
from gradewire.tls import Tls
from gradewire.transport import Transport

DEADLINE_S = 30.0


class ClientBase:
    """A client without its methods; each kind says in `_start` where its calls run."""

    def __init__(  # noqa: PLR0913 - all optional and named; a configuration object would only hide them
        self,
        address: str = "127.0.0.1:50051",
        *,
        deadline_s: float = DEADLINE_S,
        token: str | None = None,
        tls: Tls | None = None,
        connections: int = 0,
        transport: Transport | None = None,
        max_pending_items: int = MAX_PENDING_ITEMS,
        max_pending_bytes: int = MAX_PENDING_BYTES,
    ) -> None:
        check_deadline(deadline_s)
        check_most("max_pending_items", max_pending_items)
        check_most("max_pending_bytes", max_pending_bytes)
        carrier = transport or Endpoint(address, token, tls, connections)
        self.__setstate__(_Settings(carrier, deadline_s, max_pending_items, max_pending_bytes))

    def __getstate__(self) -> "_Settings":
        return self._settings

    def __setstate__(self, settings: "_Settings") -> None:
        self._settings = settings
        self._start(settings.make_calls)

    def _start(self, make_calls: Callable[[], ClientCalls]) -> None:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class _Settings:
    """What a client is made of, and all that is pickled of it."""

    carrier: Transport | Endpoint
    deadline_s: float
    max_pending_items: int
    max_pending_bytes: int

    def make_calls(self) -> ClientCalls:
        carrier = connect(self.carrier) if isinstance(self.carrier, Endpoint) else self.carrier
        return ClientCalls(carrier, self.deadline_s, self.max_pending_items, self.max_pending_bytes)
