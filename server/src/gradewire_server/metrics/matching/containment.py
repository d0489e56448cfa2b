"""Easy match and lexical match, which look for a reference in the normalised prediction.

Sources: SMILE, section on baselines ("can be found within the model response"); KNVQA-Eval, section on lexical matching
(rule i), with the normalisation for open-domain question answering from Kamalloo et al. 2023, "Evaluating Open-Domain
Question Answering in the Era of Large Language Models".
"""

from collections.abc import Iterable, Iterator

from typing_extensions import override

from gradewire_server.domain.items import Item
from gradewire_server.domain.metric import MetricInfo
from gradewire_server.metrics.common import MatchMetric
from gradewire_server.metrics.matching.exact_match import squad_normalise
from gradewire_server.metrics.text.normalise import Normalised, normalise
from gradewire_server.metrics.text.words import split_words


def contained(prediction: Normalised, references: Iterable[Normalised]) -> Iterator[bool]:
    """Yield True for each reference that the prediction contains as adjacent whole words, otherwise False."""
    whole = f" {' '.join(prediction.words)} "
    return (f" {' '.join(reference.words)} " in whole for reference in references)


class EasyMatch(MatchMetric):
    """A score of 1 if the prediction contains a reference (both in SMILE's normal form), otherwise 0."""

    info = MetricInfo(
        name="easy_match",
        version=1,
        description="1 if the prediction contains a reference as adjacent whole words (SMILE-normalised), otherwise 0.",
        citation="SMILE: A Composite Lexical-Semantic Metric for Question-Answering Evaluation, 2025, baselines",
    )

    @override
    def matches(self, item: Item) -> Iterator[bool]:
        return contained(normalise(item.prediction), map(normalise, item.references))


def _padded(text: str) -> str:
    return f" {' '.join(split_words(squad_normalise(text)))} "


class LexicalMatch(MatchMetric):
    """A score of 1 if the prediction contains a reference (both in SQuAD's normal form), otherwise 0."""

    info = MetricInfo(
        name="lexical_match",
        version=1,
        description="1 if the prediction contains a reference as adjacent whole words (SQuAD-normalised), otherwise 0.",
        citation="KNVQA: A Benchmark for evaluation knowledge-based VQA, 2023; Kamalloo et al. 2023, ACL",
    )

    @override
    def matches(self, item: Item) -> Iterator[bool]:
        prediction = _padded(item.prediction)
        return (_padded(reference) in prediction for reference in item.references)
