"""What a metric says of an item, and what it cost."""

from dataclasses import dataclass, field
from enum import IntEnum

from gradewire_server.domain.comparison import Compared
from gradewire_server.domain.parts import Parts
from gradewire_server.domain.quoting import MAX_MESSAGE_CHARACTERS, shortened


class Status(IntEnum):
    """How an (item, metric) pair ended; numbers equal gradewire.v1.Status (a test compares them)."""

    OK = 1
    INVALID_INPUT = 2
    EMPTY_PREDICTION = 3
    INVALID_PARAMETER = 4
    MODEL_UNAVAILABLE = 5
    NOT_PREPARED = 6
    UNAVAILABLE = 7
    TIMEOUT = 8
    UNPARSABLE = 9
    INTERNAL = 10
    JUDGE_CANNOT_SEE = 11
    INCONSISTENT = 12


class Warning(IntEnum):  # noqa: A001 - the wire's word for it; Python's Warning is never meant in these rooms
    """Remarks beside a score that stands; numbers equal gradewire.v1.Warning."""

    TRUNCATED = 1
    UNCALIBRATED = 2
    UNCERTAIN = 3
    MASKED = 4


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure as a value: a port answers with it, a metric passes it on as its result.

    Attributes:
        status: Not OK.
        message: For people; says what to do. Cut to MAX_MESSAGE_CHARACTERS: it may become the result of every item.
        retry_after_s: Seconds after which trying again may help, where that is known (with UNAVAILABLE).
    """

    status: Status
    message: str
    retry_after_s: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", shortened(self.message, MAX_MESSAGE_CHARACTERS))


@dataclass(frozen=True, slots=True)
class MetricResult:
    """Score or failure of one metric on one item.

    Attributes:
        score: Present exactly when `status` is OK.
        status: OK, or why there is no score.
        message: For people; says what to do.
        warnings: Remarks beside a score that stands, or on what a judge was shown whose reply is UNPARSABLE.
        matched_reference: Index of the reference that gave the score.
        parts: What the score is made of.
        correct: Whether the answer counts as right; None where the metric gives no verdict.
        retry_after_s: See `Failure.retry_after_s`.
        compared: Of a pair, whose `score` is 1 where answer A wins, 0 where B does, 0.5 for a tie.
    """

    score: float | None
    status: Status = Status.OK
    message: str = ""
    warnings: tuple[Warning, ...] = ()
    matched_reference: int | None = None
    parts: Parts | None = None
    correct: bool | None = None
    retry_after_s: float | None = None
    compared: Compared | None = None

    def __post_init__(self) -> None:
        if (self.score is not None) != (self.status is Status.OK):
            raise ValueError(f"a score goes with OK and with nothing else, not {self.score} with {self.status!r}")

    @classmethod
    def failed(cls, failure: Failure) -> "MetricResult":
        """The result of a metric that cannot be computed."""
        return cls(score=None, status=failure.status, message=failure.message, retry_after_s=failure.retry_after_s)


@dataclass(slots=True)
class CacheHits:
    """Texts by where they were answered from."""

    memory: int = 0
    disk: int = 0
    redis: int = 0
    joined: int = 0
    computed: int = 0

    @property
    def total(self) -> int:
        """All texts."""
        return self.memory + self.disk + self.redis + self.joined + self.computed


@dataclass(slots=True)
class Timing:
    """Seconds spent; shared work is counted in full for everyone who waited for it."""

    queue_s: float = 0.0
    cache_s: float = 0.0
    tokenize_s: float = 0.0
    inference_s: float = 0.0


@dataclass(frozen=True, slots=True)
class ScoredResult:
    """A result with its cost, as the scorer hands it to rpc."""

    result: MetricResult
    cache_hits: CacheHits = field(default_factory=CacheHits)
    timing: Timing = field(default_factory=Timing)
