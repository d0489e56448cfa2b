"""Token F1: the words that a prediction shares with the best reference, after SQuAD's normalisation.

Source: Rajpurkar et al. 2016, "SQuAD: 100,000+ Questions for Machine Comprehension of Text", section 6.1.
"""

from collections import Counter
from functools import partial

from typing_extensions import override

from gradewire_proto.parts import RougeLParts
from gradewire_server.domain.items import Item, MetricResult
from gradewire_server.domain.metric import MetricInfo
from gradewire_server.metrics.common import TIE, TextMetric
from gradewire_server.metrics.matching.exact_match import SquadParameters, squad_normalise


def _compare(prediction: Counter[str], reference: Counter[str]) -> RougeLParts:
    # `&` visits the words of its left side, so the total time is linear even with a long prediction.
    common = (reference & prediction).total()
    precision, recall = common / prediction.total(), common / reference.total()
    return RougeLParts(precision, recall, 2 * precision * recall / (precision + recall) if common else 0.0)


def _words(text: str) -> Counter[str]:
    return Counter(squad_normalise(text).split())


class TokenF1(TextMetric[SquadParameters]):
    """Precision, recall and F1 of the words in common with the best reference; repeated words count repeatedly.

    If several references are equally good, the first of these is used.
    """

    info = MetricInfo(
        name="token_f1",
        version=1,
        description="SQuAD's F1: words in common with the best reference, after SQuAD normalisation, in any order.",
        has_verdict=False,
        citation="Rajpurkar et al. 2016, SQuAD: 100,000+ Questions for Machine Comprehension of Text, EMNLP",
    )
    parameters_type = SquadParameters

    @override
    def grade(self, item: Item, parameters: SquadParameters) -> MetricResult:
        del parameters
        compared = map(partial(_compare, _words(item.prediction)), map(_words, item.references))
        matched, best = next(enumerate(compared))
        for index, parts in enumerate(compared, 1):
            if parts.f1 > best.f1 + TIE:
                matched, best = index, parts
        return MetricResult(best.f1, matched_reference=matched, parts=best)
