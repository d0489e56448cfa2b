"""Easy match: a reference occurs in the prediction as whole words, after SMILE's normalisation.

Source: SMILE, section on baselines ("can be found within the model response").
"""

from collections.abc import Iterable, Iterator

from typing_extensions import override

from gradewire_server.domain.items import Item
from gradewire_server.domain.metric import MetricInfo
from gradewire_server.metrics.common import MatchMetric
from gradewire_server.metrics.text.normalise import Normalised, normalise


def contained(prediction: Normalised, references: Iterable[Normalised]) -> Iterator[bool]:
    """Return whether each reference's words stand in the prediction one after another ("art" is not in "party")."""
    whole = f" {' '.join(prediction.words)} "
    return (f" {' '.join(reference.words)} " in whole for reference in references)


class EasyMatch(MatchMetric):
    """1 if a reference occurs in the prediction, else 0."""

    info = MetricInfo(
        name="easy_match",
        version=1,
        description="1 if a reference occurs in the prediction as consecutive whole words, SMILE-normalised, else 0.",
        citation="SMILE: A Composite Lexical-Semantic Metric for Question-Answering Evaluation, 2025, baselines",
    )

    @override
    def matches(self, item: Item) -> Iterator[bool]:
        return contained(normalise(item.prediction), map(normalise, item.references))
