"""Items and pairs to grade, and their results with status, parts, warnings and cost."""

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

from typing_extensions import override

from gradewire_proto.parts import Parts


@dataclass(frozen=True, slots=True)
class Image:
    """A picture: either the bytes of its file or its URI.

    Attributes:
        data: The file's bytes; empty if `uri` is given.
        uri: A data URI (``data:…;base64,…``) or an address; "" if `data` is given.
        media_type: The media type from the sender, or the detected one; "" before detection.
        digest: The SHA-256 of the bytes that a judge sees, 64 hex digits; "" before it is computed.
    """

    data: bytes = field(default=b"", repr=False)
    uri: str = ""
    media_type: str = ""
    digest: str = ""


@dataclass(frozen=True, slots=True)
class Item:
    """An answer with its question and references; all strings are NFC-normalised.

    Attributes:
        id: The caller's identifier, not necessarily unique.
        question: May be empty.
        references: The correct answers. Metrics return INVALID_INPUT if one is blank.
        prediction: The answer to grade; if it is blank, metrics return EMPTY_PREDICTION.
        synthetic_answers: One sentence for each reference, or empty.
        captions: Descriptions of the picture, not blank.
        group: A label for summaries.
        images: The pictures that the question is about, not validated.
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
        """The number of characters in the question, the prediction, the references and the synthetic answers."""
        texts = self.references + self.synthetic_answers
        return len(self.question) + len(self.prediction) + sum(map(len, texts))


@dataclass(frozen=True, slots=True)
class Pair(Item):
    """A pair of answers to compare: `prediction` is answer A, `rival` is answer B."""

    rival: str = field(kw_only=True)

    @property
    @override
    def characters(self) -> int:
        return sum(map(len, (self.question, self.prediction, self.rival, *self.references)))


@dataclass(frozen=True, slots=True)
class ReferenceEntry:
    """A question with its references but without a prediction: the input of References.Prepare."""

    question: str
    references: tuple[str, ...]
    synthetic_answers: tuple[str, ...] = ()


MAX_QUOTED_CHARACTERS: Final = 80
"""Maximum number of characters that a message quotes from a user's text."""
MAX_MESSAGE_CHARACTERS: Final = 1000
"""Maximum number of characters in a message; some messages list all known models or metrics."""


def quoted(text: str) -> str:
    """Return the text in quotes, with Python's escapes and at most 80 characters between the quotes."""
    shown = repr(text[:MAX_QUOTED_CHARACTERS])
    if len(text) <= MAX_QUOTED_CHARACTERS and len(shown) <= MAX_QUOTED_CHARACTERS + 2:
        return shown
    mark = shown[0]
    return f"{mark}{shortened(shown[1:-1] + '…')}{mark}"


def shortened(text: str, most: int = MAX_QUOTED_CHARACTERS) -> str:
    """Return the text; if it has more than `most` characters, cut it to `most` and end it with "…"."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


_ORDERS: Final = 2


class Winner(IntEnum):
    """The better of two answers. The values equal gradewire.v1.Winner's; a test compares them."""

    A = 1
    B = 2
    TIE = 3


@dataclass(frozen=True, slots=True)
class OrderVerdict:
    """A judge's verdict on a pair, for one of the two orders of its answers.

    Attributes:
        first: The answer that the judge saw first, A or B.
        winner: The winner; None if the judge's reply contained no verdict.
        probabilities: The probabilities of A, B and a tie, with sum 1; None if there is no verdict.
        label_mass: See `Choice.mass`.
        reason: The reason that the judge wrote before the verdict; may be empty.
        extracted: True if the verdict was extracted from the reason.
    """

    first: Winner
    winner: Winner | None
    probabilities: tuple[float, float, float] | None = None
    label_mass: float | None = None
    reason: str = ""
    extracted: bool = False


@dataclass(frozen=True, slots=True)
class Compared:
    """The outcome of a comparison, in addition to its status.

    Attributes:
        winner: The winner; None unless the status is OK.
        orders: The verdict with A first, then the verdict with B first; empty if no judge answered.
        decided_by: "judge" or "rule"; "" without a winner.
        prompt_tokens: The number of prompt tokens of both orders; None if the judge's server does not report it.
    """

    winner: Winner | None = None
    orders: tuple[OrderVerdict, ...] = ()
    decided_by: str = ""
    prompt_tokens: int | None = 0
    generated_tokens: int | None = 0

    @property
    def probabilities(self) -> tuple[float, float, float] | None:
        """The mean probabilities over both orders; None unless both orders have a verdict."""
        read = [order.probabilities for order in self.orders if order.probabilities is not None]
        if len(read) < _ORDERS:
            return None
        a, b, tie = (sum(each) / len(read) for each in zip(*read, strict=True))
        return a, b, tie


class Status(IntEnum):
    """The status of an (item, metric) pair. The values equal gradewire.v1.Status's; a test compares them."""

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
    """A warning about a valid score. The values equal gradewire.v1.Warning's."""

    TRUNCATED = 1
    UNCALIBRATED = 2
    UNCERTAIN = 3
    MASKED = 4


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure as a value: a port returns it, and a metric passes it on as its result.

    Attributes:
        message: The message for the user, with advice. It is cut to MAX_MESSAGE_CHARACTERS, since every item of a
            request may repeat it.
        retry_after_s: With UNAVAILABLE, the seconds after which a retry may succeed, if known.
    """

    status: Status
    message: str
    retry_after_s: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", shortened(self.message, MAX_MESSAGE_CHARACTERS))


@dataclass(frozen=True, slots=True)
class MetricResult:
    """The score or failure of one metric on one item.

    Attributes:
        score: The score; None unless `status` is OK. For a pair, 1 if answer A wins, 0 if B wins, and 0.5 for a tie.
        warnings: Warnings about a valid score, or about the judge's prompt if the judge's reply is UNPARSABLE.
        matched_reference: The index of the reference that determined the score.
        correct: The verdict; None if the metric has no verdict.
        retry_after_s: See `Failure.retry_after_s`.
        compared: The outcome for a pair.
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
            raise ValueError(f"a result has a score only if its status is OK, not {self.score} with {self.status!r}")

    @classmethod
    def failed(cls, failure: Failure) -> "MetricResult":
        """Return the result of a metric that cannot be computed."""
        return cls(score=None, status=failure.status, message=failure.message, retry_after_s=failure.retry_after_s)


@dataclass(slots=True)
class CacheHits:
    """The number of texts by the source of their answers."""

    memory: int = 0
    disk: int = 0
    redis: int = 0
    joined: int = 0
    computed: int = 0

    @property
    def total(self) -> int:
        """The number of all texts."""
        return self.memory + self.disk + self.redis + self.joined + self.computed


@dataclass(slots=True)
class Timing:
    """The seconds spent. Work shared by several items is counted in full for each of them."""

    queue_s: float = 0.0
    cache_s: float = 0.0
    tokenize_s: float = 0.0
    inference_s: float = 0.0


@dataclass(frozen=True, slots=True)
class ScoredResult:
    """A result with its cost."""

    result: MetricResult
    cache_hits: CacheHits = field(default_factory=CacheHits)
    timing: Timing = field(default_factory=Timing)
