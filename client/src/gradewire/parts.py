"""What scores are made of: one type per kind of parts, with the fields of its message in types.proto."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import get_type_hints

from gradewire.verdict_parts import AutoParts, CorrectnessParts, GraderParts, JudgeParts


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
    | CorrectnessParts
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
        "correctness": CorrectnessParts,
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
