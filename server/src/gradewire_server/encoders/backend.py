"""What makes vectors of texts, of one model: an encoder, or a store that is asked before one."""

import math
from asyncio import Future
from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeAlias

from gradewire_server.domain.needs import Source
from gradewire_server.domain.result import Failure
from gradewire_server.encoders.pending import PendingText
from gradewire_server.storage.vector_kind import Blobs


class Encoded(NamedTuple):
    """What one text was made into.

    Attributes:
        blobs: All that was asked for when its turn came, or why there is nothing.
        source: Where it came from.
        began_s: When the run began that computed it, `time.monotonic()` seconds; infinity where there was none.
    """

    blobs: Blobs | Failure
    source: Source = Source.COMPUTED
    began_s: float = math.inf


EncodedFuture: TypeAlias = Future[Encoded]


class VectorBackend(Protocol):
    """Texts to vectors. Lives on one event loop."""

    async def encode(self, texts: Sequence[PendingText], /) -> Sequence[EncodedFuture]:
        """Begins to work texts out; what is wanted of them may grow until their turn comes.

        Returns:
            One future per text, in order. Those of texts that nobody wanted any more are cancelled; what fails has a
            `RunError`, or whatever else a run raised.
        """
