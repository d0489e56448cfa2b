"""Metrics that compare words and need no model."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from gradewire.metric_types.base import Metric
from gradewire.metric_types.encoders import Measure

VqaConsensus = Literal["leave_one_out", "direct", "single"]
VqaNormalise = Literal["official", "always"]
MeteorSynonyms = Literal["wordnet", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactMatch(Metric):
    """1 when the prediction equals a reference after SQuAD normalisation, else 0."""

    name: ClassVar[Literal["exact_match"]] = "exact_match"


@dataclass(frozen=True, slots=True, kw_only=True)
class EasyMatch(Metric):
    """1 when a reference occurs in the prediction as consecutive whole words, else 0."""

    name: ClassVar[Literal["easy_match"]] = "easy_match"


@dataclass(frozen=True, slots=True, kw_only=True)
class LexicalMatch(Metric):
    """1 when a reference occurs in the prediction as KNVQA-Eval matches them, else 0."""

    name: ClassVar[Literal["lexical_match"]] = "lexical_match"


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueMatch(Metric):
    """Share of the best reference's dates, quantities and other values that the prediction has, as values, 0 to 1.

    0 where it contradicts one. Fails for items whose references have no values.
    """

    name: ClassVar[Literal["value_match"]] = "value_match"
    needs_values: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class VqaAccuracy(Metric):
    """VQA accuracy: how many annotators gave the predicted answer, 0 to 1; one reference per annotator.

    Attributes:
        consensus: leave_one_out (default, the official rule; needs two references), direct: min(1, agreeing / 3), or
            single: 1 where any reference agrees.
        verdict_cut: Score from which the answer counts as right, above 0 to 1; None: any agreeing annotator.
        normalise: official (default): nothing is normalised where all annotators gave one answer; or always.
    """

    name: ClassVar[Literal["vqa_accuracy"]] = "vqa_accuracy"
    least_references: ClassVar[int] = 2
    consensus: VqaConsensus | None = None
    verdict_cut: float | None = None
    normalise: VqaNormalise | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftVqaAccuracy(Metric):
    """`VqaAccuracy` with 1 - character error rate in place of equality, 0 to 1.

    Attributes:
        consensus: As in `VqaAccuracy`.
        verdict_cut: Score from which the answer counts as right, above 0 to 1; None: no verdict.
        normalise: As in `VqaAccuracy`.
    """

    name: ClassVar[Literal["soft_vqa_accuracy"]] = "soft_vqa_accuracy"
    least_references: ClassVar[int] = 2
    consensus: VqaConsensus | None = None
    verdict_cut: float | None = None
    normalise: VqaNormalise | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RougeL(Metric):
    """ROUGE-L: longest common subsequence of words, 0 to 1.

    Attributes:
        measure: What becomes the score: f1 (default), precision or recall.
        stem: Whether word stems are compared (Porter); default False.
    """

    name: ClassVar[Literal["rouge_l"]] = "rouge_l"
    measure: Measure | None = None
    stem: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bleu(Metric):
    """Sentence BLEU over all references, smoothed as sacrebleu does, 0 to 1.

    Attributes:
        max_ngram: Longest n-gram, 1 to 4 (default).
    """

    name: ClassVar[Literal["bleu"]] = "bleu"
    max_ngram: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Meteor(Metric):
    """METEOR: words matched as they are, by stem and by synonym, with a penalty for broken order, 0 to 1.

    Attributes:
        synonyms: wordnet (default; the server needs WordNet's files) or none: a different, lower score.
        alpha: Weight of precision against recall, 0 to 1; None: 0.9.
        beta: Exponent of the penalty, 0 to 100; None: 3.
        gamma: Weight of the penalty, 0 to 1; None: 0.5.
    """

    name: ClassVar[Literal["meteor"]] = "meteor"
    synonyms: MeteorSynonyms | None = None
    alpha: float | None = None
    beta: float | None = None
    gamma: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cider(Metric):
    """CIDEr-D over all references, n-grams weighted by how rare they are in a corpus, 0 to 10.

    Attributes:
        corpus: What is counted: the references of one request (request, default), or those that `prepare` was given
            (prepared).
        reference_set: Of a prepared corpus, and means it; None: the call's. A call has one.
    """

    name: ClassVar[Literal["cider"]] = "cider"
    corpus: Literal["request", "prepared"] | None = None
    reference_set: str | None = None
