"""The client for programs without an event loop."""

import weakref
from collections.abc import Iterable
from types import TracebackType
from typing import Self

from gradewire._batch import ProgressCallback
from gradewire._runtime import Runtime
from gradewire.async_client import DEADLINE_S, AsyncClient, check_deadline, connect
from gradewire.items import ItemLike
from gradewire.metric_choice import MetricsLike
from gradewire.metric_types import Preset, Synthetic
from gradewire.model_list import ModelList
from gradewire.score_report import ScoreReport
from gradewire.tls import Tls
from gradewire.transport import Transport


class Client:
    """Scores answers on a gradewire server; `with` closes it, so does the end of the program.

    The same methods as `AsyncClient`, run on a thread of the client's own: usable from several threads, and where an
    event loop runs already, as in a notebook. After a fork the child gets a thread and a connection of its own at first
    use (ForkedClient where the parent has used gRPC before: the C library does not survive that).

    Args:
        address: HOST:PORT of the server.
        deadline_s: For calls that do not say their own, seconds.
        token: Sent as bearer token.
        tls: Encrypts; None talks in clear.
        transport: Takes the place of the connection to `address`: `gradewire.testing.StubTransport` in tests.
    """

    def __init__(
        self,
        address: str = "127.0.0.1:50051",
        *,
        deadline_s: float = DEADLINE_S,
        token: str | None = None,
        tls: Tls | None = None,
        transport: Transport | None = None,
    ) -> None:
        check_deadline(deadline_s)
        carrier = transport or connect(address, token=token, tls=tls)
        self._runtime = Runtime(lambda: AsyncClient(deadline_s=deadline_s, transport=carrier))
        weakref.finalize(self, self._runtime.close)

    def score(  # noqa: PLR0913 - the one call that most users make; all but two arguments are optional and named
        self,
        items: Iterable[ItemLike],
        metrics: MetricsLike = "smile",
        *,
        preset: Preset | None = None,
        synthetic: Synthetic | None = None,
        model: str | None = None,
        reference_set: str | None = None,
        deadline_s: float | None = None,
        progress: ProgressCallback | None = None,
    ) -> ScoreReport:
        """See `AsyncClient.score`."""
        items = list(items)
        return self._runtime.run(
            lambda core: core.score(
                items,
                metrics,
                preset=preset,
                synthetic=synthetic,
                model=model,
                reference_set=reference_set,
                deadline_s=deadline_s,
                progress=progress,
            )
        )

    def models(self, *, deadline_s: float | None = None) -> ModelList:
        """See `AsyncClient.models`."""
        return self._runtime.run(lambda core: core.models(deadline_s=deadline_s))

    def close(self) -> None:
        """See `AsyncClient.close`."""
        self._runtime.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
