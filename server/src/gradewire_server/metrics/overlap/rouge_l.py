"""ROUGE-L: the longest common subsequence of words.

Source: Lin 2004, "ROUGE: A Package for Automatic Evaluation of Summaries", section 3 (sentence level, beta 1).
"""

from dataclasses import dataclass
from functools import partial
from typing import Final

from rapidfuzz.distance import LCSseq
from typing_extensions import override

from gradewire_proto.choices import Measure
from gradewire_proto.parts import RougeLParts
from gradewire_server.domain.items import Item, MetricResult
from gradewire_server.domain.metric import MetricInfo
from gradewire_server.metrics.common import TIE, AnswerParameters, TextMetric, cut_warning
from gradewire_server.metrics.text.stems import stem
from gradewire_server.metrics.text.words import first_words, words_of_references

_MAX_UNSTEMMED_CHARACTERS: Final = 3


@dataclass(frozen=True, slots=True)
class RougeLParameters(AnswerParameters):
    """The parameters of `rouge_l` (see types.proto).

    Raises:
        ParameterError: A choice is unknown.
    """

    measure: Measure = Measure.F1
    stem: bool = False


def _words(text: str, *, stemmed: bool) -> tuple[list[str], bool]:
    words, truncated = first_words(text)
    if stemmed:
        words = [stem(word) if len(word) > _MAX_UNSTEMMED_CHARACTERS else word for word in words]
    return words, truncated


def _compare(prediction: list[str], reference: list[str]) -> RougeLParts:
    common = LCSseq.similarity(prediction, reference)
    precision, recall = common / len(prediction), common / len(reference)
    return RougeLParts(precision, recall, 2 * precision * recall / (precision + recall) if common else 0.0)


class RougeL(TextMetric[RougeLParameters]):
    """Precision, recall and F1 of the longest common subsequence with the best reference.

    If several references are equally good, the first of these is used.
    """

    info = MetricInfo(
        name="rouge_l",
        version=1,
        description="Longest common subsequence of words with the closest reference, as precision, recall and F1.",
        has_verdict=False,
        citation="Lin 2004, ROUGE: A Package for Automatic Evaluation of Summaries, ACL workshop",
    )
    parameters_type = RougeLParameters

    @override
    def grade(self, item: Item, parameters: RougeLParameters) -> MetricResult:
        words_of = partial(_words, stemmed=parameters.stem)
        prediction, prediction_cut = words_of(item.prediction)
        references, references_cut = words_of_references(item.references, words_of)
        best, best_score, matched = None, -1.0, 0
        for index, reference in enumerate(references):
            parts = _compare(prediction, reference)
            score: float = getattr(parts, parameters.measure)
            if score > best_score + TIE:
                best, best_score, matched = parts, score, index
        return MetricResult(
            score=best_score,
            warnings=cut_warning(prediction_cut, references_cut),
            matched_reference=matched,
            parts=best,
        )
