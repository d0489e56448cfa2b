"""Exact match after SQuAD's normalisation.

Sources: Rajpurkar et al. 2016, "SQuAD: 100,000+ Questions for Machine Comprehension of Text" (v1.1's evaluation);
Rajpurkar, Jia and Liang 2018, "Know What You Don't Know: Unanswerable Questions for SQuAD" (`abstention`).
"""

import re
import string
from collections.abc import Iterator
from dataclasses import dataclass

from typing_extensions import override

from gradewire_proto.choices import Abstention
from gradewire_server.domain.items import Item
from gradewire_server.domain.metric import MetricInfo
from gradewire_server.metrics.common import AnswerParameters, MatchMetric
from gradewire_server.metrics.text.words import translated

_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")


def squad_normalise(text: str) -> str:
    """Put the text into lower case, remove ASCII punctuation and articles, and leave single spaces.

    Keep the articles if there are no other words, and the punctuation if there are no words: "A" becomes "a", "?" stays
    "?".
    """
    lowered = text.lower()
    bare = translated(lowered, _NO_PUNCTUATION)
    for candidate in (_ARTICLES.sub(" ", bare), bare, lowered):
        words = candidate.split()
        if words:
            return " ".join(words)
    return ""


@dataclass(frozen=True, slots=True)
class SquadParameters(AnswerParameters):
    """The parameters of `exact_match` and `token_f1` (see types.proto).

    Raises:
        ParameterError: A choice is unknown.
    """

    abstention: Abstention = Abstention.RECOGNISED

    @override
    def is_abstention(self, text: str) -> bool:
        if self.abstention is Abstention.BLANK:
            return not _ARTICLES.sub(" ", translated(text.lower(), _NO_PUNCTUATION)).strip()
        return AnswerParameters.is_abstention(self, text)  # super() fails in a dataclass with slots


class ExactMatch(MatchMetric):
    """A score of 1 if the prediction equals a reference after `squad_normalise`, otherwise 0."""

    info = MetricInfo(
        name="exact_match",
        version=1,
        description="1 if the prediction equals a reference apart from case, punctuation, articles and white space, "
        "otherwise 0.",
        citation="Rajpurkar et al. 2016, SQuAD: 100,000+ Questions for Machine Comprehension of Text, EMNLP",
    )
    parameters_type = SquadParameters

    @override
    def matches(self, item: Item) -> Iterator[bool]:
        prediction = squad_normalise(item.prediction)
        return (squad_normalise(reference) == prediction for reference in item.references)
