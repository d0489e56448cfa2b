"""What a reward scorer is made of, and all that is pickled of it."""

from dataclasses import dataclass

from gradewire._calls.arguments import check_deadline
from gradewire._calls.client_calls import ClientCalls
from gradewire._calls.corpus import check_streamed
from gradewire._calls.options import CallOptions
from gradewire._calls.submit import MAX_PENDING_BYTES, MAX_PENDING_ITEMS
from gradewire._transport.connect import connect
from gradewire._transport.endpoint import Endpoint
from gradewire.errors import InvalidRequest
from gradewire.rewards.answer import Extraction, Extractor, check_extraction
from gradewire.rewards.failures import FailureHandling
from gradewire.rewards.gathering import Gathering
from gradewire.transport import Transport


@dataclass(frozen=True, slots=True)
class RewardSettings:
    """As `RewardScorer` documents them.

    Raises:
        InvalidRequest: One is wrong; the message names it.
    """

    carrier: Transport | Endpoint
    options: CallOptions
    reads: str
    extraction: Extraction | Extractor
    failures: FailureHandling
    gathering: Gathering
    deadline_s: float

    def __post_init__(self) -> None:
        check_extraction(self.extraction)
        check_deadline(self.deadline_s)
        if self.reads not in {"score", "correct"}:
            raise InvalidRequest(f"reads={self.reads!r}: give score, or correct for the verdict as 1 or 0")
        choice = self.options.choose()
        check_streamed(choice.specs)
        if len(choice.labels) != 1:
            raise InvalidRequest(f"metric is {', '.join(choice.labels)}: a reward is the score of one metric")

    def make_calls(self) -> ClientCalls:
        """The calls of one process and event loop."""
        carrier = connect(self.carrier) if isinstance(self.carrier, Endpoint) else self.carrier
        return ClientCalls(carrier, self.deadline_s, MAX_PENDING_ITEMS, MAX_PENDING_BYTES)
