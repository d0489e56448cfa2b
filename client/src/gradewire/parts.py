"""What scores are made of: one type per kind of parts, with the fields of its message in types.proto."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import get_type_hints


@dataclass(frozen=True, slots=True)
class SmileParts:
    """The terms of a SMILE score.

    Attributes:
        sentence: Similarity of prediction and (synthetic) reference sentence.
        keyword: Similarity of the best window and the reference's words.
        exact: Share of the reference's words found (`paper`: 0 or 1).
        lexical: Mean of `exact` and `keyword`.
        best_window: The prediction's words, normalised, that came closest.
        bin: 0 to 5.
        correct: Whether the score counts as a right answer.
        harmonic_mean: `reference_code` only, and there only where it is defined.
        value_outcome: What became of the matched reference's dates, quantities and other values in the prediction:
            "contradicted", "missing" or "found"; None where it has none. Says nothing about the score.
    """

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
    """The terms of a BERTScore, of the reference that gave it: -1 to 1 before rescaling.

    Attributes:
        precision: Mean over the prediction's tokens of the closest reference token's cosine.
        recall: Mean over the reference's tokens of the closest prediction token's cosine.
        f1: Harmonic mean of the two.
        corpus: What the weights were counted over, NAME:DOCUMENTS:DIGEST; empty without idf.
    """

    precision: float
    recall: float
    f1: float
    corpus: str = ""


@dataclass(frozen=True, slots=True)
class VqaParts:
    """The counts behind a score of `vqa_accuracy` or `soft_vqa_accuracy`.

    Attributes:
        agreeing: Annotators whose answer equals the prediction.
        annotators: All of them.
        compared_prediction: The prediction as it was compared: normalised, unless the annotators are unanimous.
    """

    agreeing: int
    annotators: int
    compared_prediction: str


@dataclass(frozen=True, slots=True)
class ValueMatchParts:
    """What a prediction has of the values of the reference that gave the score.

    Attributes:
        wanted: Values of the reference that the question does not say already; all of them where it says every one.
        found: How many of them the prediction has.
        contradicted: How many it has another value of the same kind and unit in place of.
        missing: How many it has neither way; `wanted` is the sum of the three.
        coarser: How many of the missing ones are dates that it says less exactly: the year of a day.
        extra: Values of the prediction, of the wanted kinds, that neither question nor reference has.
        kinds: Kinds of the wanted values ("date", "quantity" ...), each with the worst that became of one:
            "contradicted", "missing" or "found".
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
    """Longest common subsequence by the prediction's words, by the reference's, and F1 of both; 0 to 1 each."""

    precision: float
    recall: float
    f1: float


@dataclass(frozen=True, slots=True)
class BleuParts:
    """The terms of a BLEU score.

    Attributes:
        precisions: Modified n-gram precisions after smoothing, 0 to 1, for 1 to `max_ngram`.
        brevity_penalty: Factor for a prediction shorter than the references, 0 to 1.
        prediction_words: Words of the prediction.
        reference_words: Words of the reference whose length is closest.
    """

    precisions: tuple[float, ...]
    brevity_penalty: float
    prediction_words: int
    reference_words: int


@dataclass(frozen=True, slots=True)
class MeteorParts:
    """The terms of a METEOR score, of the reference that gave it.

    Attributes:
        precision: Matched words by those of the prediction, 0 to 1.
        recall: Matched words by those of the reference, 0 to 1.
        penalty: Share taken off for broken order, 0 to 1.
        matches: Matched words.
        chunks: Stretches of matched words in the same order on both sides.
    """

    precision: float
    recall: float
    penalty: float
    matches: int
    chunks: int


@dataclass(frozen=True, slots=True)
class CiderParts:
    """The terms of a CIDEr-D score.

    Attributes:
        by_order: Score of 1- to 4-grams, 0 to 10 each; their mean is the score.
        corpus: What the weights were counted over, NAME:DOCUMENTS:DIGEST.
    """

    by_order: tuple[float, ...]
    corpus: str


@dataclass(frozen=True, slots=True)
class JudgeParts:
    """What a judge said.

    Attributes:
        value: What was read from the labels, on their own scale: rating 1 to 3, grade 0 to 5, similarity 0 to 1; None
            for a verdict alone.
        labels: What the judge chose from; empty where a rule decided.
        probabilities: Of the labels, sum 1.
        yes_probability: Of the verdict yes, 0 to 1; None where no verdict was asked for.
        label_mass: Probability of all labels together before the judge was held to them, where the backend tells: near
            0, the judge wanted to say something else.
        reason: What it wrote before its verdict, where it was asked to.
        decided_by: "judge"; "rule" for a yes-no question that a rule decided; "guard" where the judge called the answer
            right, and so against another question's key.
        demonstrations: Examples that it was shown: "binary", "short", "long"; empty where there are none.
        prompt_tokens: Tokens that it read, over all rounds; most of them once for many items. None where the judge's
            server does not say.
        generated_tokens: Tokens that it wrote, over all rounds; None likewise.
        other_key_score: Score that it gave the answer against another question's key, where a guard asked; else None.
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

    def __post_init__(self) -> None:
        if self.decided_by != "rule" and not self.prompt_tokens:
            # On the wire, where there is no None: no prompt is empty.
            object.__setattr__(self, "prompt_tokens", None)
            object.__setattr__(self, "generated_tokens", None)


@dataclass(frozen=True, slots=True)
class CalibratedParts:
    """What a calibrated probability rests on; terms of SMILE as in `SmileParts`, preset one_pass.

    Attributes:
        smile: SMILE's score.
        sentence: Similarity of prediction and reference.
        keyword: Similarity of the best window and the reference's words.
        exact: Share of the reference's words found.
        best_window: The prediction's words, normalised, that came closest.
        features: By name, in alphabetical order; one that does not apply to the item is left out.
        uncertain: Whether the probability lies inside the band; None for `features_only`, as all that follows.
        band_lower: Lower end of the band in which the verdict is not trusted; both ends belong to it.
        band_upper: Upper end of the band.
        fit: Identity of the fit, 12 hex digits.
        distance: How unlike the rows of the fit the item is, 0 and more, whatever its answer is worth; None where the
            fit does not say what they were like.
        uncertain_reason: "band": the probability lies inside the band for items like the fit's. "unlike": inside the
            band that is wider because the item is not. "rule": a rule calls wrong what the rest calls
            right. "" where the verdict is not uncertain.
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
    """What a grader said of the reference that gave the score.

    Attributes:
        logit: Of "right", the highest of the pieces; the score is the logistic function of it, divided by the model's
            temperature.
        pieces: Overlapping pieces in which the answer was read, 1 to 8.
        truncated: Whether a part of question, reference or answer was not read.
    """

    logit: float
    pieces: int
    truncated: bool


@dataclass(frozen=True, slots=True)
class AutoParts:
    """Who decided, and why.

    Attributes:
        decided_by: "exact_match", "calibrated" or "judge"; "nobody" where the judge was asked and failed: the status is
            the judge's then, and these parts stand beside it.
        reason: "certain": outside the band. "sample": the same, and the judge is asked as well. "band": inside it, so
            the judge decides. "refused": inside it, and on the rows of the fit the judge was no better there.
        probability: That of calibrated; None where exact_match decided.
        band_lower: Probabilities above it and below `band_upper` are inside the band; 0 and 1: all, both ends included.
        band_upper: See there.
        sampled: Whether the answer is of the sample that the judge is asked about whoever decides.
        judge_status: How asking the judge ended (OK, TIMEOUT, …); "" where it was not asked.
        judge_score: What it said, whether or not it decided; None where it was not asked, or failed.
        judge_correct: Likewise.
        fit: Identity of the fit, 12 hex digits.
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


Parts = (
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

PART_TYPES: Mapping[str, type[Parts]] = MappingProxyType(
    {
        "smile": SmileParts,
        "bertscore": BertscoreParts,
        "vqa": VqaParts,
        "rouge_l": RougeLParts,
        "bleu": BleuParts,
        "meteor": MeteorParts,
        "cider": CiderParts,
        "judge": JudgeParts,
        "calibrated": CalibratedParts,
        "auto": AutoParts,
        "value_match": ValueMatchParts,
        "grader": GraderParts,
    }
)
"""By the name of their field in MetricResult; a new kind of parts is a dataclass and its place here."""

PART_FIELDS: Mapping[str, object] = MappingProxyType(
    {field.name: get_type_hints(kind)[field.name] for kind in PART_TYPES.values() for field in fields(kind)}
)
"""Type by name of all fields; where kinds share a name, they share its type."""
