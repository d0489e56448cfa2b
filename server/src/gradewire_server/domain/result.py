"""What a metric says of an item, and what it cost."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TypeAlias

from gradewire_server.domain.comparison import Compared
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
class SmileParts:
    """The terms of a SMILE score; ranges as in gradewire.v1.SmileParts."""

    sentence: float
    keyword: float
    exact: float
    lexical: float
    best_window: str
    bin: int
    correct: bool
    harmonic_mean: float | None = None
    value_outcome: str | None = None


@dataclass(frozen=True, slots=True)
class BertscoreParts:
    """Of the reference that gave the score; `corpus` as in `DocumentFrequencies.name`, empty without idf."""

    precision: float
    recall: float
    f1: float
    corpus: str = ""


@dataclass(frozen=True, slots=True)
class VqaParts:
    """Of vqa_accuracy and soft_vqa_accuracy; fields as in gradewire.v1.VqaParts."""

    agreeing: int
    annotators: int
    compared_prediction: str


@dataclass(frozen=True, slots=True)
class ValueMatchParts:
    """What an answer has of a reference's values; fields as in gradewire.v1.ValueMatchParts.

    Attributes:
        kinds: Kinds of the wanted values, each with the worst that became of one: "contradicted", "missing", "found".
    """

    wanted: int
    found: int
    contradicted: int
    missing: int
    coarser: int
    extra: int
    kinds: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class RougeLParts:
    """Of the reference that gave the score, 0 to 1 each."""

    precision: float
    recall: float
    f1: float


@dataclass(frozen=True, slots=True)
class BleuParts:
    """Modified n-gram precisions after smoothing (0 to 1, for 1 to max_ngram) and what shortens the score."""

    precisions: tuple[float, ...]
    brevity_penalty: float
    prediction_words: int
    reference_words: int


@dataclass(frozen=True, slots=True)
class MeteorParts:
    """Of the reference that gave the score; `penalty` is the share taken off for broken order."""

    precision: float
    recall: float
    penalty: float
    matches: int
    chunks: int


@dataclass(frozen=True, slots=True)
class CiderParts:
    """Scores of 1- to 4-grams, 0 to 10 each, and what the weights were counted over (`DocumentFrequencies.name`)."""

    by_order: tuple[float, ...]
    corpus: str


@dataclass(frozen=True, slots=True)
class JudgeParts:
    """What a judge said; fields as in gradewire.v1.JudgeParts.

    Attributes:
        value: On the labels' own scale; None for a verdict alone.
        labels: What the judge chose from; empty where a rule decided.
        probabilities: Of the labels, sum 1.
        yes_probability: Of a verdict.
        label_mass: See `Choice.mass`; the least one where there were several choices.
        reason: Written before the verdict.
        decided_by: "judge", "rule" or "guard".
        demonstrations: "binary", "short", "long", or empty.
        prompt_tokens: Over all rounds; None where the judge's server does not say both of each.
        generated_tokens: Likewise.
        other_key_score: Score that the judge gave against another question's key; None where it was not asked.
    """

    value: float | None = None
    labels: tuple[str, ...] = ()
    probabilities: tuple[float, ...] = ()
    yes_probability: float | None = None
    label_mass: float | None = None
    reason: str = ""
    decided_by: str = "judge"
    demonstrations: str = ""
    prompt_tokens: int | None = 0
    generated_tokens: int | None = 0
    other_key_score: float | None = None


@dataclass(frozen=True, slots=True)
class CalibratedParts:
    """What a probability rests on; fields as in gradewire.v1.CalibratedParts.

    Attributes:
        smile: SMILE's score, preset one_pass.
        sentence: Its term of that name.
        keyword: Likewise.
        exact: Likewise.
        best_window: Likewise.
        features: By name, in the metric's order; those that do not apply are left out.
        uncertain: Whether the probability lies inside the band; None where there is no probability, as all below.
        band_lower: Where the band begins.
        band_upper: Where it ends.
        fit: Identity of the fit.
        distance: From the rows of the fit; None where it does not say what they were like.
        uncertain_reason: "band", "unlike" or "rule"; "" where the verdict is not uncertain.
    """

    smile: float
    sentence: float
    keyword: float
    exact: float
    best_window: str
    features: Mapping[str, float]
    uncertain: bool | None = None
    band_lower: float | None = None
    band_upper: float | None = None
    fit: str = ""
    distance: float | None = None
    uncertain_reason: str = ""


@dataclass(frozen=True, slots=True)
class GraderParts:
    """What a grader said of the reference that gave the score; fields as in gradewire.v1.GraderParts."""

    logit: float
    pieces: int
    truncated: bool


@dataclass(frozen=True, slots=True)
class AutoParts:
    """Who decided, and why; fields as in gradewire.v1.AutoParts.

    Attributes:
        decided_by: "exact_match", "calibrated", "judge"; "nobody" where the judge was asked and failed.
        reason: "certain", "sample", "band" or "refused".
        probability: That of `calibrated`; None where exact_match decided.
        band_lower: Probabilities above it and below `band_upper` are inside the band; 0 and 1: all.
        band_upper: See there.
        sampled: Whether the answer is of the sample that the judge is asked about whoever decides.
        judge_status: How asking the judge ended; "" where it was not asked.
        judge_score: What it said; None where it was not asked, or failed.
        judge_correct: Likewise.
        fit: Identity of the fit.
    """

    decided_by: str
    reason: str
    probability: float | None
    band_lower: float | None
    band_upper: float | None
    sampled: bool = False
    judge_status: str = ""
    judge_score: float | None = None
    judge_correct: bool | None = None
    fit: str = ""


Parts: TypeAlias = (
    SmileParts
    | BertscoreParts
    | VqaParts
    | ValueMatchParts
    | RougeLParts
    | BleuParts
    | MeteorParts
    | CiderParts
    | JudgeParts
    | CalibratedParts
    | AutoParts
    | GraderParts
)


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
