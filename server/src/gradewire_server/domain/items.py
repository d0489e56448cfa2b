"""Items and pairs to grade, and their results."""

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

from typing_extensions import override

from gradewire_proto.parts import Parts


@dataclass(frozen=True, slots=True)
class Image:
    """An image, given either by `data` (the file's bytes) or by `uri` (a data URI or an address).

    Attributes:
        media_type: The media type, or "" if not detected yet.
        digest: The SHA-256 of the bytes that a judge sees, 64 hex digits, or "" if not computed yet.
    """

    data: bytes = field(default=b"", repr=False)
    uri: str = ""
    media_type: str = ""
    digest: str = ""


@dataclass(frozen=True, slots=True)
class Item:
    """An answer with its question and references. All strings are NFC-normalised.

    Attributes:
        id: The identifier that the caller gave the item, not necessarily unique.
        question: The question, possibly empty.
        references: The correct answers. If a reference is blank, metrics return INVALID_INPUT. Empty if the question
            is not answerable.
        prediction: The answer to grade. If the answer is blank, metrics return EMPTY_PREDICTION, unless the question is
            not answerable.
        synthetic_answers: A sentence for each reference, or no sentences at all.
        captions: Descriptions of the images, not blank.
        group: A label for summaries.
        images: The images, not validated yet.
        choices: The texts of a multiple-choice question's options in the order of their letters, or no texts.
        answerable: False if the question has no answer.
    """

    id: str
    question: str
    references: tuple[str, ...]
    prediction: str
    synthetic_answers: tuple[str, ...] = ()
    captions: tuple[str, ...] = ()
    group: str = ""
    images: tuple[Image, ...] = ()
    choices: tuple[str, ...] = ()
    answerable: bool = True

    @property
    def characters(self) -> int:
        """The number of characters in all texts except the captions."""
        texts = self.references + self.synthetic_answers + self.choices
        return len(self.question) + len(self.prediction) + sum(map(len, texts))


@dataclass(frozen=True, slots=True)
class Pair(Item):
    """A pair of answers to compare: `prediction` is answer A, and `rival` is answer B.

    `others` are further answers of a list that a judge puts in order.
    """

    rival: str = field(kw_only=True)
    others: tuple[str, ...] = ()

    @property
    def answers(self) -> tuple[str, ...]:
        """All answers."""
        return (self.prediction, self.rival, *self.others)

    @property
    @override
    def characters(self) -> int:
        return sum(map(len, (self.question, *self.answers, *self.references)))


@dataclass(frozen=True, slots=True)
class ReferenceEntry:
    """A question and its references: an input to References.Prepare."""

    question: str
    references: tuple[str, ...]
    synthetic_answers: tuple[str, ...] = ()


MAX_QUOTED_CHARACTERS: Final = 80
MAX_MESSAGE_CHARACTERS: Final = 1000


def quoted(text: str, most: int = MAX_QUOTED_CHARACTERS) -> str:
    """Return the text in quotes, with Python's escapes, cut to `most` characters."""
    shown = repr(text[:most])
    if len(text) <= most and len(shown) <= most + 2:
        return shown
    mark = shown[0]
    return f"{mark}{shortened(shown[1:-1] + '…', most)}{mark}"


def shortened(text: str, most: int = MAX_QUOTED_CHARACTERS) -> str:
    """Return the text. If the text has more than `most` characters, cut it and end it with "…"."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


_ORDERS: Final = 2


class Winner(IntEnum):
    """The better of two answers, with the values of gradewire.v1.Winner."""

    A = 1
    B = 2
    TIE = 3


@dataclass(frozen=True, slots=True)
class OrderVerdict:
    """A judge's verdict on a pair, for one order of the answers.

    Attributes:
        first: The answer that the judge saw first, A or B.
        winner: The winner, or None if the judge's reply contained no verdict.
        probabilities: The probabilities of A, B and a tie, with sum 1, or None without a verdict.
        label_mass: See `Choice.mass`.
        extracted: True if the verdict was extracted from `reason`.
    """

    first: Winner
    winner: Winner | None
    probabilities: tuple[float, float, float] | None = None
    label_mass: float | None = None
    reason: str = ""
    extracted: bool = False


@dataclass(frozen=True, slots=True)
class ListVerdict:
    """A judge's ranking of a list of answers.

    Attributes:
        shown: The answers' positions in the order in which the judge saw them.
        ranks: The rank of each answer by position, 1 for the best one, or () if the judge's reply contained no ranking.
    """

    shown: tuple[int, ...]
    ranks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Compared:
    """The outcome of a comparison.

    Attributes:
        winner: The winner, or None if the status is not OK, or for a list.
        lists: The rankings of a list, one for each order of its answers.
        orders: The verdict with A first, then the verdict with B first. Empty if no judge answered.
        decided_by: "judge", "rule", or "" without a winner.
        prompt_tokens: The total for both orders, or None if unknown.
    """

    winner: Winner | None = None
    orders: tuple[OrderVerdict, ...] = ()
    decided_by: str = ""
    prompt_tokens: int | None = 0
    generated_tokens: int | None = 0
    lists: tuple[ListVerdict, ...] = ()

    @property
    def probabilities(self) -> tuple[float, float, float] | None:
        """The probabilities of A, B and a tie, averaged over both orders, or None if a verdict is missing."""
        read = [order.probabilities for order in self.orders if order.probabilities is not None]
        if len(read) < _ORDERS:
            return None
        a, b, tie = (sum(each) / len(read) for each in zip(*read, strict=True))
        return a, b, tie


class Status(IntEnum):
    """The status of a metric's result for an item, with the values of gradewire.v1.Status."""

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
    """A warning about a valid score. The values are those of gradewire.v1.Warning."""

    TRUNCATED = 1
    UNCALIBRATED = 2
    UNCERTAIN = 3
    MASKED = 4


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure that ports and metrics return instead of raising an exception.

    Attributes:
        message: A message with advice for the user, cut to MAX_MESSAGE_CHARACTERS.
        retry_after_s: If the status is UNAVAILABLE, the seconds after which a retry may succeed, or None if unknown.
        prompt_tokens: The number of tokens that a judge read for an answer that cannot be used, or None if unknown;
            0 if no judge answered.
        generated_tokens: The same for the tokens that the judge wrote.
    """

    status: Status
    message: str
    retry_after_s: float | None = None
    prompt_tokens: int | None = 0
    generated_tokens: int | None = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", shortened(self.message, MAX_MESSAGE_CHARACTERS))


@dataclass(frozen=True, slots=True)
class MetricResult:
    """One metric's score or failure for one item.

    Attributes:
        score: The score, or None if `status` is not OK. For a pair, 1 if A wins, 0 if B wins, and 0.5 for a tie or
            a list.
        warnings: Warnings about a valid score or, if the judge's reply is UNPARSABLE, about the judge's prompt.
        matched_reference: The index of the reference that determined the score.
        correct: The verdict, or None if the metric has no verdict.
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
            raise ValueError(f"status {self.status!r} does not match score {self.score}: only OK has a score")

    @classmethod
    def failed(cls, failure: Failure) -> "MetricResult":
        """Return the result for a metric that failed."""
        return cls(score=None, status=failure.status, message=failure.message, retry_after_s=failure.retry_after_s)


@dataclass(slots=True)
class CacheHits:
    """The number of texts from each `AnswerSource`."""

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
    """The seconds spent on a result. If several items share work, the work's full time counts for each item."""

    queue_s: float = 0.0
    cache_s: float = 0.0
    tokenize_s: float = 0.0
    inference_s: float = 0.0


@dataclass(frozen=True, slots=True)
class ScoredResult:
    """A result with its cache hits and timing."""

    result: MetricResult
    cache_hits: CacheHits = field(default_factory=CacheHits)
    timing: Timing = field(default_factory=Timing)
