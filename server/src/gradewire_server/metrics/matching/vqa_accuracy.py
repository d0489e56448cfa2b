"""VQA accuracy: agreement with annotators' answers."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rapidfuzz.distance import Levenshtein
from typing_extensions import override

from gradewire_proto.choices import VqaConsensus, VqaNormalise
from gradewire_proto.parts import VqaParts
from gradewire_server.domain.items import Failure, Item, MetricResult, Status
from gradewire_server.domain.metric import MetricInfo, ParameterError
from gradewire_server.metrics.common import AnswerParameters, FailureError, TextMetric, cut_warning, take_choices
from gradewire_server.metrics.text.words import translated
from gradewire_server.metrics.values.numerals import SMALL

_PUNCTUATION: Final = frozenset(';/[]"{}()=+\\_-><@`,?!')
_COMMA_IN_NUMBER: Final = re.compile(r"\d,\d")
_PERIOD_OUTSIDE_NUMBER: Final = re.compile(r"\.(?!\d)")
_NUMBERS: Final = {"none": "0"} | {word: str(value) for word, value in SMALL.items() if value <= 10}
_ARTICLES: Final = frozenset({"a", "an", "the"})

_ENDINGS: Final = {
    "n't": "ai are ca could did does do had has have is might must need ought sha should was were wo would",
    "n't've": "could had might should would",
    "'d": "he how it someone something there they where who you",
    "'d've": "he it she somebody someone something there they we who you y'all",
    "'ll": "how it somebody someone something they what who why you y'all",
    "'re": "there they what why you",
    "'s": "he how somebody someone that there what when where who why",
    "'ve": "could might must not should they we what where who would you",
}
_IRREGULAR: Final = ("ma'am", "o'clock", "'ow's'at", "'twas", "y'all")


_REGULAR: Final = tuple(stem + ending for ending, stems in _ENDINGS.items() for stem in stems.split())
_CONTRACTIONS: Final = {
    word[: mark.start()] + word[mark.end() :]: word
    for word in (*_REGULAR, *_IRREGULAR)
    for mark in re.finditer("'", word)
}
"""Contractions by misspelling. A misspelling lacks one apostrophe of its contraction."""


def tidy(text: str) -> str:
    """Replace tabs and line breaks with spaces, and strip both ends."""
    return text.replace("\n", " ").replace("\t", " ").strip()


def vqa_normalise(text: str) -> str:
    """Return an answer in the VQA challenge's normal form, which may be "".

    A punctuation mark becomes a space. If the mark is next to a space anywhere in the text, or if the text contains a
    comma between digits, the mark is removed instead. Apostrophes and colons stay. A period is removed unless a digit
    follows. Then the text becomes lower case, "two" becomes "2" (zero to ten; "none" becomes "0"), articles are
    removed, and contractions get their apostrophe ("dont" becomes "don't").
    """
    tight = _COMMA_IN_NUMBER.search(text) is not None
    gaps = {
        ord(mark): "" if tight or f"{mark} " in text or f" {mark}" in text else " "
        for mark in _PUNCTUATION.intersection(text)
    }
    words = _PERIOD_OUTSIDE_NUMBER.sub("", translated(text, gaps)).lower().split()
    kept = [_NUMBERS.get(word, word) for word in words if word not in _ARTICLES]
    return " ".join(_CONTRACTIONS.get(word, word) for word in kept)


_FULL_AGREEMENT: Final = 3
_ROUNDING: Final = 1e-9
MAX_CHARACTERS: Final = 4096


@dataclass(frozen=True, slots=True)
class VqaAccuracyParameters(AnswerParameters):
    """The parameters of `vqa_accuracy` and `soft_vqa_accuracy` (see types.proto).

    `verdict_cut` is above 0 and at most 1. Without a cut, `vqa_accuracy` is correct if any annotator agrees, and
    `soft_vqa_accuracy` has no verdict.

    Raises:
        ParameterError: A choice is unknown, or `verdict_cut` is out of range.
    """

    consensus: VqaConsensus = VqaConsensus.LEAVE_ONE_OUT
    verdict_cut: float | None = None
    normalise: VqaNormalise = VqaNormalise.OFFICIAL

    def __post_init__(self) -> None:
        take_choices(self)
        if self.verdict_cut is not None and not 0 < self.verdict_cut <= 1:
            raise ParameterError("verdict_cut", f"must be a number above 0 and at most 1, not {self.verdict_cut}")


_ALONE: Final = Failure(
    Status.INVALID_INPUT,
    "references: consensus=leave_one_out needs at least two references, one from each annotator. With only one "
    "reference, set consensus=single",
)


def comparable(item: Item, parameters: VqaAccuracyParameters) -> tuple[str, tuple[str, ...]]:
    """Normalise the prediction and the references.

    If all references are equal, the official rule only tidies the texts and does not normalise them.

    Raises:
        FailureError: `consensus` is leave_one_out, but there is only one reference.
    """
    if parameters.consensus is VqaConsensus.LEAVE_ONE_OUT and len(item.references) == 1:
        raise FailureError(_ALONE)
    references = tuple(map(tidy, item.references))
    prediction = tidy(item.prediction)
    if parameters.normalise is VqaNormalise.OFFICIAL and len(set(references)) == 1:
        return prediction, references
    return vqa_normalise(prediction), tuple(map(vqa_normalise, references))


def consensus_score(agreements: Sequence[float], consensus: VqaConsensus) -> float:
    """Return the score, 0 to 1. `agreements` has a value from 0 to 1 for each annotator."""
    if consensus is VqaConsensus.SINGLE:
        return max(agreements)
    total = math.fsum(agreements)
    if consensus is VqaConsensus.DIRECT:
        return min(1.0, total / _FULL_AGREEMENT)
    return math.fsum(min(1.0, (total - own) / _FULL_AGREEMENT) for own in agreements) / len(agreements)


def is_at_least(score: float, cut: float) -> bool:
    """Return True if a score is at least `cut`, allowing for rounding errors."""
    return score >= cut - _ROUNDING


class VqaAccuracy(TextMetric[VqaAccuracyParameters]):
    """The prediction's agreement with the annotators; `matched_reference` is the first agreeing annotator's answer."""

    info = MetricInfo(
        name="vqa_accuracy",
        version=2,
        description="Share of annotators who gave this answer, by the VQA challenge's rule; all references count.",
        grades_abstentions=False,
        citation="Antol et al. 2015, VQA: Visual Question Answering, ICCV; the challenge's evaluation program",
    )
    parameters_type = VqaAccuracyParameters

    @override
    def grade(self, item: Item, parameters: VqaAccuracyParameters) -> MetricResult:
        prediction, references = comparable(item, parameters)
        agreements = [float(reference == prediction) for reference in references]
        agreeing = int(sum(agreements))
        score = consensus_score(agreements, parameters.consensus)
        return MetricResult(
            score=score,
            matched_reference=agreements.index(1.0) if agreeing else None,
            parts=VqaParts(agreeing, len(references), prediction),
            correct=agreeing > 0 if parameters.verdict_cut is None else is_at_least(score, parameters.verdict_cut),
        )


def character_similarity(prediction: str, reference: str) -> float:
    """Return 1 - distance / length, but at least 0, from the edit distance and the reference's length.

    An empty reference equals only an empty prediction.
    """
    if not reference:
        return float(not prediction)
    # One edit per reference character already means 0, so the search can end there.
    limit = len(reference) - 1
    distance = Levenshtein.distance(prediction, reference, score_cutoff=limit)
    return 1 - distance / len(reference) if distance <= limit else 0.0


class SoftVqaAccuracy(VqaAccuracy):
    """VQA accuracy in which an annotator's agreement is 1 minus the character error rate.

    `matched_reference` is the index of the first closest answer. Without `verdict_cut`, there is no verdict.
    """

    info = MetricInfo(
        name="soft_vqa_accuracy",
        version=2,
        description="VQA accuracy with 1 minus the character error rate instead of equality; all references count.",
        grades_abstentions=False,
        citation="Hu et al. 2022, PromptCap: Prompt-Guided Task-Aware Image Captioning",
    )

    @override
    def grade(self, item: Item, parameters: VqaAccuracyParameters) -> MetricResult:
        prediction, references = comparable(item, parameters)
        truncated = max(map(len, (prediction, *references))) > MAX_CHARACTERS
        shortened = prediction[:MAX_CHARACTERS]
        distinct = {
            reference: character_similarity(shortened, reference[:MAX_CHARACTERS]) for reference in set(references)
        }
        agreements = [distinct[reference] for reference in references]
        score = consensus_score(agreements, parameters.consensus)
        closest = max(agreements)
        return MetricResult(
            score=score,
            warnings=cut_warning(truncated),
            matched_reference=agreements.index(closest) if closest else None,
            parts=VqaParts(references.count(prediction), len(references), prediction),
            correct=None if parameters.verdict_cut is None else is_at_least(score, parameters.verdict_cut),
        )
