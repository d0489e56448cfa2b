"""Lexical match: a reference occurs in the prediction as whole words.

Source: KNVQA-Eval, section on lexical matching (rule i), with the normalisation of open-domain question answering as in
Kamalloo et al. 2023, "Evaluating Open-Domain Question Answering in the Era of Large Language Models".
"""

from collections.abc import Iterator

from typing_extensions import override

from gradewire_server.domain.items import Item
from gradewire_server.domain.metric import MetricInfo
from gradewire_server.metrics.common import MatchMetric
from gradewire_server.metrics.matching.exact_match import squad_normalise
from gradewire_server.metrics.text.words import split_words


def _padded(text: str) -> str:
    return f" {' '.join(split_words(squad_normalise(text)))} "


class LexicalMatch(MatchMetric):
    """1 if a reference occurs in the prediction, else 0."""

    info = MetricInfo(
        name="lexical_match",
        version=1,
        description="1 if a reference occurs in the prediction as consecutive whole words, SQuAD-normalised, else 0.",
        citation="KNVQA: A Benchmark for evaluation knowledge-based VQA, 2023; Kamalloo et al. 2023, ACL",
    )

    @override
    def matches(self, item: Item) -> Iterator[bool]:
        prediction = _padded(item.prediction)
        return (_padded(reference) in prediction for reference in item.references)
