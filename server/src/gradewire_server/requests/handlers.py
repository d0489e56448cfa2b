"""Everything the server does, without a transport: servicers and embedded clients call it, so both score alike."""

from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Final

from gradewire_proto.v1 import judging_pb2, models_pb2, references_pb2, scoring_pb2
from gradewire_server.domain.caller import LOCAL, Caller
from gradewire_server.requests.context import RequestContext
from gradewire_server.requests.forms import ITEMS, PAIRS
from gradewire_server.requests.judging import complete, decide
from gradewire_server.requests.list_models import list_models
from gradewire_server.requests.prepare import prepare
from gradewire_server.requests.score import ScoreHandler
from gradewire_server.requests.stream import ScoreStream

_MAX_VIEWS: Final = 4096
"""Namespaces whose handlers are kept; each takes a few kilobytes."""


class Handlers:
    """Scores, compares, prepares and lists; one per process, used on one event loop.

    Every `deadline_s` is seconds from now; None is the default, and more than the maximum is cut to it. Work that is
    not done shortly before the deadline is answered as TIMEOUT results beside those that are. All calls may be
    cancelled.

    Attributes:
        context: Limits, permits and all else that the handlers share.
    """

    def __init__(self, context: RequestContext) -> None:
        self.context = context
        self._score = ScoreHandler(context, ITEMS)
        self._compare = ScoreHandler(context, PAIRS)
        self._views: OrderedDict[str, Handlers] = OrderedDict()

    def within(self, namespace: str) -> "Handlers":
        """The handlers of a tenant's namespace, which share limits, permits and models with these; empty: these."""
        if not namespace:
            return self
        view = self._views.get(namespace)
        if view is None:
            view = self._views[namespace] = Handlers(self.context.within(namespace))
            self._forget_views()
        self._views.move_to_end(namespace)
        return view

    async def close(self) -> None:
        """Waits for cancelled work to end; call it before the scorer's ports are closed."""
        await self._score.close()
        await self._compare.close()
        for view in self._views.values():
            await view.close()

    @property
    def _idle(self) -> bool:
        return self._score.idle and self._compare.idle

    async def score(
        self,
        request: scoring_pb2.ScoreRequest,
        *,
        deadline_s: float | None = None,
        size_bytes: int | None = None,
        caller: Caller = LOCAL,
    ) -> scoring_pb2.ScoreResponse:
        """Scores items x metrics; the reply is in the order of the items.

        Args:
            request: As gradewire.v1.Scoring.Score says.
            deadline_s: Seconds from now.
            size_bytes: Size of the request on the wire where it is known, which saves measuring it.
            caller: Who asks.

        Raises:
            InvalidRequestError: Names the field at fault.
            NothingLoadedError: No metric of the request can be computed here.
            OverloadedError: Too much is in flight for it to be done in time.
            DeadlineExceededError: The deadline passed before scoring began.
        """
        reply: scoring_pb2.ScoreResponse = await self._score.run(
            request, deadline_s=deadline_s, size_bytes=size_bytes, caller=caller
        )
        return reply

    async def compare(
        self,
        request: judging_pb2.CompareRequest,
        *,
        deadline_s: float | None = None,
        size_bytes: int | None = None,
        caller: Caller = LOCAL,
    ) -> judging_pb2.CompareResponse:
        """Compares the answers of pairs, as gradewire.v1.Judging.Compare says; arguments and errors as `score`."""
        reply: judging_pb2.CompareResponse = await self._compare.run(
            request, deadline_s=deadline_s, size_bytes=size_bytes, caller=caller
        )
        return reply

    async def complete(
        self,
        request: judging_pb2.CompleteRequest,
        *,
        deadline_s: float | None = None,
        size_bytes: int | None = None,
        caller: Caller = LOCAL,
    ) -> judging_pb2.CompleteResponse:
        """Has a judge write, as gradewire.v1.Judging.Complete says; arguments and errors as `score`."""
        return await complete(self.context, request, deadline_s=deadline_s, size_bytes=size_bytes, caller=caller)

    async def decide(
        self,
        request: judging_pb2.DecideRequest,
        *,
        deadline_s: float | None = None,
        size_bytes: int | None = None,
        caller: Caller = LOCAL,
    ) -> judging_pb2.DecideResponse:
        """Has a judge decide, as gradewire.v1.Judging.Decide says; arguments and errors as `score`."""
        return await decide(self.context, request, deadline_s=deadline_s, size_bytes=size_bytes, caller=caller)

    def compare_stream(
        self,
        requests: AsyncIterator[judging_pb2.CompareStreamRequest],
        *,
        deadline_s: float | None = None,
        caller: Caller = LOCAL,
    ) -> AsyncGenerator[judging_pb2.CompareStreamResponse]:
        """Compares a stream of pairs; otherwise as `score_stream`."""
        return ScoreStream(self.context, PAIRS, deadline_s=deadline_s, caller=caller).run(requests)

    def score_stream(
        self,
        requests: AsyncIterator[scoring_pb2.ScoreStreamRequest],
        *,
        deadline_s: float | None = None,
        caller: Caller = LOCAL,
    ) -> AsyncGenerator[scoring_pb2.ScoreStreamResponse]:
        """Scores a stream; results come as they are done. Errors as `score`, raised while iterating.

        Without `deadline_s` the stream may run for as long as it likes; the items of each message get the default.
        """
        return ScoreStream(self.context, ITEMS, deadline_s=deadline_s, caller=caller).run(requests)

    def prepare(
        self, request: references_pb2.PrepareRequest, *, deadline_s: float | None = None, caller: Caller = LOCAL
    ) -> AsyncGenerator[references_pb2.PrepareProgress]:
        """Registers references and fills the cache, telling of progress; errors as `score`, raised while iterating."""
        return prepare(self.context, request, deadline_s=deadline_s, caller=caller)

    def _forget_views(self) -> None:
        """Lets go of namespaces that were not in use for longest, but for those that still have work to wait for."""
        idle = [name for name, view in self._views.items() if view._idle]  # noqa: SLF001 - of the same class
        for name in idle[: max(0, len(self._views) - _MAX_VIEWS)]:
            del self._views[name]

    async def list_models(self) -> models_pb2.ListModelsResponse:
        """Models, metrics and limits of this server."""
        return await list_models(self.context)
