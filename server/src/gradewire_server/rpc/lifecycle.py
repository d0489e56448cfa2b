"""The phase of the server (loading, serving, draining, stopping), and what gRPC health and HTTP say of it."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from grpc_health.v1 import health_pb2

from gradewire_proto.conventions.services import JUDGING, MODELS, REFERENCES, SCORING
from gradewire_server.phase import Phase
from gradewire_server.rpc.errors import NotServingError
from gradewire_server.rpc.health import HealthService

if TYPE_CHECKING:
    from gradewire_server.requests.handlers import Handlers
    from gradewire_server.rpc.telemetry import RpcTelemetry

COMPUTING_SERVICES: Final = (SCORING, REFERENCES)
"""Services that are of no use without the engine."""
ALL_SERVICES: Final = ("", *COMPUTING_SERVICES, MODELS)


class Lifecycle:
    """The phase, and the handlers while there are any.

    Attributes:
        health: What gRPC health says.
        others_serve: Whether this process stops while others of the server go on, which callers are told.
    """

    def __init__(self, telemetry: "RpcTelemetry") -> None:
        self.health = HealthService()
        self.others_serve = False
        self._telemetry = telemetry
        self._phase = Phase.LOADING
        self._handlers: Handlers | None = None
        self._degraded: tuple[str, ...] = ()
        self._broken: tuple[str, ...] = ()
        self._overloaded = False
        self._judging: bool | None = None
        self._beat_s = time.monotonic()

    @property
    def phase(self) -> Phase:
        """The phase now."""
        return self._phase

    async def loading(self) -> None:
        """Says NOT_SERVING for all services."""
        for service in ALL_SERVICES:
            await self.health.set(service, health_pb2.HealthCheckResponse.NOT_SERVING)

    def loaded(self, handlers: "Handlers") -> None:
        """Takes calls from now on, and does not say so yet."""
        self._handlers = handlers

    async def serving(self, handlers: "Handlers") -> None:
        """Takes calls from now on, and says so."""
        self._handlers = handlers
        self._phase = Phase.SERVING
        await self._show()

    async def draining(self) -> None:
        """Says NOT_SERVING, so that no new callers come, and still takes calls."""
        self._phase = Phase.DRAINING
        self._telemetry.serving.set(0)
        await self.health.enter_graceful_shutdown()

    def stopping(self) -> None:
        """Takes no more calls."""
        self._phase = Phase.STOPPING

    async def observe(
        self, *, degraded: Sequence[str], broken: Sequence[str], judging: bool | None = None, overloaded: bool = False
    ) -> None:
        """Notes the state of models, judges and stores, and shows it.

        Args:
            degraded: What works less well; scoring goes on.
            broken: What keeps the engine from computing; flips the services that need it.
            judging: Whether judges can be asked, which flips the service of that name alone; None: there are none.
            overloaded: Whether overload has lasted so long that other replicas are to be asked; health says SERVING.
        """
        self._beat_s = time.monotonic()
        self._overloaded = overloaded
        changed = (tuple(broken), judging) != (self._broken, self._judging)
        self._judging = judging
        self._degraded, self._broken = tuple(degraded), tuple(broken)
        self._telemetry.degraded.set(len(self._degraded) + len(self._broken))
        if changed and self._phase is Phase.SERVING:
            await self._show()

    def handlers(self) -> "Handlers":
        """What calls end in; raises NotServingError while loading and once stopping."""
        if self._handlers is None:
            raise NotServingError("the server is still loading its models; try again, or another replica")
        if self._phase is Phase.STOPPING:
            raise NotServingError("the server is shutting down; try another replica")
        return self._handlers

    def report(self) -> dict[str, Any]:
        """For /healthz; may be called from any thread."""
        return {
            "phase": self._phase.value,
            "degraded": [*self._degraded, *self._broken],
            "judging": self._judging,
            "event_loop_silent_s": round(time.monotonic() - self._beat_s, 3),
        }

    @property
    def ready(self) -> bool:
        """Whether new callers are welcome; may be asked from any thread."""
        return self._phase is Phase.SERVING and not self._broken and not self._overloaded

    async def _show(self) -> None:
        status = health_pb2.HealthCheckResponse
        for service in ALL_SERVICES:
            down = bool(self._broken) and service in {"", *COMPUTING_SERVICES}
            await self.health.set(service, status.NOT_SERVING if down else status.SERVING)
        if self._judging is not None:
            await self.health.set(JUDGING, status.SERVING if self._judging else status.NOT_SERVING)
        self._telemetry.serving.set(0 if self._broken else 1)
