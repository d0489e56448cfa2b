"""What a score is made of, a class for each kind of metric."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias


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
        prompt_tokens: Read over all rounds; None where the judge's server does not say both of each.
        generated_tokens: Written over all rounds; None where `prompt_tokens` is None.
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
class CorrectnessParts:
    """What a probability rests on; fields as in gradewire.v1.CorrectnessParts.

    Attributes:
        smile: SMILE's score, preset one_pass.
        sentence: Its sentence term.
        keyword: Its keyword term.
        exact: Its exact term.
        best_window: The window that its keyword term is of.
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
        decided_by: "exact_match", "correctness", "judge"; "nobody" where the judge was asked and failed.
        reason: "certain", "sample", "band" or "refused".
        probability: That of `correctness`; None where exact_match decided.
        band_lower: Probabilities above it and below `band_upper` are inside the band; 0 and 1: all.
        band_upper: See there.
        sampled: Whether the answer is of the sample that the judge is asked about whoever decides.
        judge_status: How asking the judge ended; "" where it was not asked.
        judge_score: What it said; None where it was not asked, or failed.
        judge_correct: Its verdict; None where it was not asked, or failed.
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
    | CorrectnessParts
    | AutoParts
    | GraderParts
)
