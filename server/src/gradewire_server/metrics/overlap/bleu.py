"""Sentence BLEU over all references at once, with the same results as sacrebleu.

Source: Papineni et al. 2002, "BLEU: a Method for Automatic Evaluation of Machine Translation"; Post 2018, "A Call for
Clarity in Reporting BLEU Scores" (tokenisation 13a); Chen and Cherry 2014 (smoothing 3, named exp in sacrebleu).
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from math import exp, log
from typing import Final

from typing_extensions import override

from gradewire_proto.parts import BleuParts
from gradewire_server.domain.items import Failure, Item, MetricResult, Status
from gradewire_server.domain.metric import MetricInfo, ParameterError
from gradewire_server.metrics.common import AnswerParameters, FailureError, TextMetric, cut_warning, take_choices
from gradewire_server.metrics.text.words import MAX_WORDS, words_of_references

_LONGEST_NGRAM: Final = 4
MAX_CHARACTERS: Final = 16_384


@dataclass(frozen=True, slots=True)
class BleuParameters(AnswerParameters):
    """The parameters of `bleu`: `max_ngram` is the length of the longest n-gram in words.

    Raises:
        ParameterError: `max_ngram` is not 1 to 4, or a choice is unknown.
    """

    max_ngram: int = _LONGEST_NGRAM

    def __post_init__(self) -> None:
        take_choices(self)
        if not 1 <= self.max_ngram <= _LONGEST_NGRAM:
            raise ParameterError("max_ngram", f"must be 1 to {_LONGEST_NGRAM}, not {self.max_ngram}")


# The replacements of tokenisation 13a (mteval-v13a.pl), in their order.
_MARKUP: Final = (("<skipped>", ""), ("-\n", ""), ("\n", " "))
_ENTITIES: Final = (("&quot;", '"'), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">"))
_SEPARATIONS: Final = (
    (re.compile(r"([\{-\~\[-\` -\&\(-\+\:-\@\/])"), r" \1 "),
    (re.compile(r"([^0-9])([\.,])"), r"\1 \2 "),
    (re.compile(r"([\.,])([^0-9])"), r" \1 \2"),
    (re.compile(r"([0-9])(-)"), r"\1 \2 "),
)


def _tokens(text: str) -> list[str]:
    for found, replacement in _MARKUP + _ENTITIES:
        text = text.replace(found, replacement)
    text = f" {text} "
    for pattern, separated in _SEPARATIONS:
        text = pattern.sub(separated, text)
    return text.split()


def _first_tokens(text: str) -> tuple[list[str], bool]:
    begun = text.strip()
    tokens = _tokens(begun[:MAX_CHARACTERS])
    return tokens[:MAX_WORDS], len(tokens) > MAX_WORDS or len(begun) > MAX_CHARACTERS


def _ngrams(tokens: list[str], length: int) -> Iterator[tuple[str, ...]]:
    return zip(*(tokens[start:] for start in range(length)), strict=False)


def _compute(prediction: list[str], references: list[list[str]], max_ngram: int) -> tuple[float, BleuParts]:
    """Return the score and its parts; the prediction has at least one word."""
    correct, total = [], []
    for length in range(1, max_ngram + 1):
        predicted = Counter(_ngrams(prediction, length))
        # Counting all n-grams of all references would need seconds for a thousand long references.
        allowed: Counter[tuple[str, ...]] = Counter()
        for reference in references:
            allowed |= Counter(ngram for ngram in _ngrams(reference, length) if ngram in predicted)
        correct.append((predicted & allowed).total())
        total.append(predicted.total())
    words = len(prediction)
    closest = min(map(len, references), key=lambda length: (abs(length - words), length))
    penalty = exp(1 - closest / words) if words < closest else 1.0
    percentages = _percentages(correct, total) if any(correct) else []
    score = penalty * exp(sum(map(log, percentages)) / len(percentages)) if percentages else 0.0
    precisions = [percentage / 100 for percentage in percentages]
    missing = [0.0] * (max_ngram - len(precisions))
    return min(1.0, score / 100), BleuParts(
        precisions=(*precisions, *missing),
        brevity_penalty=penalty,
        prediction_words=words,
        reference_words=closest,
    )


def _percentages(correct: list[int], total: list[int]) -> list[float]:
    """Return the precision of each length that the prediction has n-grams of, smoothed where no n-gram is right."""
    smoothing = 1
    found = []
    for right, number in zip(correct, total, strict=True):
        if number == 0:
            break
        if right == 0:
            smoothing *= 2
        found.append(100 * right / number if right else 100 / (smoothing * number))
    return found


class Bleu(TextMetric[BleuParameters]):
    """Sentence BLEU, 0 to 1. It compares all references together, so there is no `matched_reference`."""

    info = MetricInfo(
        name="bleu",
        version=1,
        description="Sentence BLEU over all references: 13a tokens, smoothing exp, effective order; sacrebleu / 100.",
        has_verdict=False,
        citation="Papineni et al. 2002, BLEU, ACL; Post 2018, A Call for Clarity in Reporting BLEU Scores, WMT",
    )
    parameters_type = BleuParameters

    @override
    def grade(self, item: Item, parameters: BleuParameters) -> MetricResult:
        prediction, prediction_cut = _first_tokens(item.prediction)
        if not prediction:
            message = "prediction: has no BLEU tokens"
            raise FailureError(Failure(Status.EMPTY_PREDICTION, message))
        references, references_cut = words_of_references(item.references, _first_tokens)
        if [] in references:
            message = f"references[{references.index([])}]: has no BLEU tokens"
            raise FailureError(Failure(Status.INVALID_INPUT, message))
        score, parts = _compute(prediction, references, parameters.max_ngram)
        return MetricResult(score=score, warnings=cut_warning(prediction_cut, references_cut), parts=parts)
