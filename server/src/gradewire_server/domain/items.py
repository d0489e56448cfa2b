"""Items and pairs to grade, and their results: status, parts, warnings, cost."""

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

from typing_extensions import override

from gradewire_proto.parts import Parts


@dataclass(frozen=True, slots=True)
class Image:
    """A picture: the bytes of its file, or where it is.

    Attributes:
        data: The file's bytes; empty where `uri` names it.
        uri: data:…;base64,… or an address; empty where `data` is there.
        media_type: As its sender says, else as it was found out; empty: not known yet.
        digest: SHA-256 of what a judge is shown, 64 hex digits; empty: not counted yet.
    """

    data: bytes = field(default=b"", repr=False)
    uri: str = ""
    media_type: str = ""
    digest: str = ""


@dataclass(frozen=True, slots=True)
class Item:
    """One answer with its question and references; all strings are NFC-normalised.

    Attributes:
        id: The caller's name for it; need not be unique.
        question: What was asked; may be empty.
        references: Right answers. May hold blank ones: metrics answer those with INVALID_INPUT.
        prediction: The answer to grade; may be blank (EMPTY_PREDICTION).
        synthetic_answers: One sentence per reference, or empty.
        captions: What the picture shows, none of them blank.
        group: Label for summaries.
        images: What the question is about; not checked.
    """

    id: str
    question: str
    references: tuple[str, ...]
    prediction: str
    synthetic_answers: tuple[str, ...] = ()
    captions: tuple[str, ...] = ()
    group: str = ""
    images: tuple[Image, ...] = ()

    @property
    def characters(self) -> int:
        """Of the texts that metrics read."""
        texts = self.references + self.synthetic_answers
        return len(self.question) + len(self.prediction) + sum(map(len, texts))


@dataclass(frozen=True, slots=True)
class Pair(Item):
    """A pair of answers to compare: `prediction` is answer A, `rival` answer B."""

    rival: str = field(kw_only=True)

    @property
    @override
    def characters(self) -> int:
        return sum(map(len, (self.question, self.prediction, self.rival, *self.references)))


@dataclass(frozen=True, slots=True)
class ReferenceEntry:
    """References of one question, without a prediction; what References.Prepare registers."""

    question: str
    references: tuple[str, ...]
    synthetic_answers: tuple[str, ...] = ()


MAX_QUOTED_CHARACTERS: Final = 80
"""Of a text that somebody else wrote, in a message for people."""
MAX_MESSAGE_CHARACTERS: Final = 1000
"""Of a whole message: some list the models or metrics that are known here."""


def quoted(text: str) -> str:
    """The text in quotes, escaped as Python does, and cut: at most 80 characters between the quotes."""
    shown = repr(text[:MAX_QUOTED_CHARACTERS])
    if len(text) <= MAX_QUOTED_CHARACTERS and len(shown) <= MAX_QUOTED_CHARACTERS + 2:
        return shown
    mark = shown[0]
    return f"{mark}{shortened(shown[1:-1] + '…')}{mark}"


def shortened(text: str, most: int = MAX_QUOTED_CHARACTERS) -> str:
    """The text, cut to `most` characters, the last of which says that it was."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


_ORDERS: Final = 2


class Winner(IntEnum):
    """The better one of two answers; numbers equal gradewire.v1.Winner (a test compares them)."""

    A = 1
    B = 2
    TIE = 3


@dataclass(frozen=True, slots=True)
class OrderVerdict:
    """What a judge said of a pair in one of its two orders.

    Attributes:
        first: Answer that it was shown first, A or B.
        winner: None where no verdict could be read, as `probabilities`.
        probabilities: Of A, B and a tie, sum 1.
        label_mass: See `Choice.mass`.
        reason: Written before the verdict; may be empty.
        extracted: The verdict was taken from the reason alone.
    """

    first: Winner
    winner: Winner | None
    probabilities: tuple[float, float, float] | None = None
    label_mass: float | None = None
    reason: str = ""
    extracted: bool = False


@dataclass(frozen=True, slots=True)
class Compared:
    """What there is to say of a pair beside its status.

    Attributes:
        winner: Present exactly when the status is OK.
        orders: A first, then B first; empty where no judge was asked, or it did not answer.
        decided_by: "judge" or "rule"; empty where there is no winner.
        prompt_tokens: Over both orders; None where the judge's server does not say.
    """

    winner: Winner | None = None
    orders: tuple[OrderVerdict, ...] = ()
    decided_by: str = ""
    prompt_tokens: int | None = 0
    generated_tokens: int | None = 0

    @property
    def probabilities(self) -> tuple[float, float, float] | None:
        """Means over both orders; None where they were not both read."""
        read = [order.probabilities for order in self.orders if order.probabilities is not None]
        if len(read) < _ORDERS:
            return None
        a, b, tie = (sum(each) / len(read) for each in zip(*read, strict=True))
        return a, b, tie


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


class ResultWarning(IntEnum):
    """Remarks beside a score that stands; numbers equal gradewire.v1.Warning."""

    TRUNCATED = 1
    UNCALIBRATED = 2
    UNCERTAIN = 3
    MASKED = 4


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure as a value: a port answers with it, a metric passes it on as its result.

    Attributes:
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
        warnings: Remarks beside a score that stands, or on what a judge was shown whose reply is UNPARSABLE.
        matched_reference: Index of the reference that gave the score.
        correct: Whether the answer counts as right; None where the metric gives no verdict.
        retry_after_s: See `Failure.retry_after_s`.
        compared: Of a pair, whose `score` is 1 where answer A wins, 0 where B does, 0.5 for a tie.
    """

    score: float | None
    status: Status = Status.OK
    message: str = ""
    warnings: tuple[ResultWarning, ...] = ()
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
