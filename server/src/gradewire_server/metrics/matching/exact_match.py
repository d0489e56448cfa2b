"""Exact match after SQuAD's normalisation.

Source: Rajpurkar et al. 2016, "SQuAD: 100,000+ Questions for Machine Comprehension of Text" (evaluation of v1.1).
"""

import re
import string

from gradewire_server.domain.item import Item, ReferenceEntry
from gradewire_server.domain.metric import MetricInfo, ModelFacts
from gradewire_server.domain.needs import Preparation, Program
from gradewire_server.domain.result import MetricResult
from gradewire_server.metrics.checks import check_item, check_references
from gradewire_server.metrics.parameters import ExactMatchParameters

_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")


def squad_normalise(text: str) -> str:
    """Lower-case, without ASCII punctuation and articles, single spaces.

    Where nothing is left, less is taken away: an answer "A" stays "a", and "?" stays "?", so that neither equals "the".
    """
    lowered = text.lower()
    bare = lowered.translate(_NO_PUNCTUATION)
    for candidate in (_ARTICLES.sub(" ", bare), bare, lowered):
        words = candidate.split()
        if words:
            return " ".join(words)
    return ""


class ExactMatch:
    """1 if the prediction equals a reference after `squad_normalise`, else 0; a match names its reference."""

    info = MetricInfo(
        name="exact_match",
        version=1,
        description="1 if prediction equals reference save case, punctuation, articles and white space, else 0.",
        minimum=0.0,
        maximum=1.0,
        higher_is_better=True,
        citation="Rajpurkar et al. 2016, SQuAD: 100,000+ Questions for Machine Comprehension of Text, EMNLP",
        parameters=(),
        needs_model=False,
    )
    parameters_type = ExactMatchParameters

    def score(self, item: Item, parameters: ExactMatchParameters, facts: ModelFacts) -> Program:
        """Asks for nothing."""
        del parameters, facts
        yield from ()
        failure = check_item(item)
        if failure is not None:
            return MetricResult.failed(failure)
        prediction = squad_normalise(item.prediction)
        for index, reference in enumerate(item.references):
            if squad_normalise(reference) == prediction:
                return MetricResult(score=1.0, matched_reference=index, correct=True)
        return MetricResult(score=0.0, correct=False)

    def prepare(self, entry: ReferenceEntry, parameters: ExactMatchParameters) -> Preparation:
        """Asks for nothing."""
        del parameters
        yield from ()
        return check_references(entry.references)
