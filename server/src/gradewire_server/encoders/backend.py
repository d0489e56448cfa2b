"""What makes vectors of texts, of one model: an encoder, or a store that is asked before one."""

import math
from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from gradewire_server.domain.needs import AnswerSource
from gradewire_server.domain.result import Failure
from gradewire_server.encoders.batching.submission import Ended
from gradewire_server.encoders.waiting_calls import PendingText
from gradewire_server.storage.vector_kind import Blobs


class Encoded(NamedTuple):
    """What one text was made into.

    Attributes:
        blobs: All that was asked for when its turn came, or why there is nothing.
        source: Where it came from.
        began_s: When the run began that computed it, `time.monotonic()` seconds; infinity where there was none.
    """

    blobs: Blobs | Failure
    source: AnswerSource = AnswerSource.COMPUTED
    began_s: float = math.inf


EndedTexts: TypeAlias = Ended[PendingText, Encoded]


class VectorBackend(Protocol):
    """Texts to vectors. Lives on one event loop."""

    def encode(self, texts: Sequence[PendingText], /) -> AsyncIterator[EndedTexts]:
        """Works texts out, each of which ends once; what is wanted of them may grow until their turn comes."""
