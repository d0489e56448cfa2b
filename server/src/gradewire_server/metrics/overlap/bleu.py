"""Sentence BLEU over all references at once, with the same results as sacrebleu.

Source: Papineni et al. 2002, "BLEU: a Method for Automatic Evaluation of Machine Translation"; Post 2018, "A Call for
Clarity in Reporting BLEU Scores" (tokenisation 13a); Chen and Cherry 2014 (smoothing 3, named exp in sacrebleu).
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from sacrebleu.metrics.bleu import BLEU, BLEUScore
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a
from sacrebleu.tokenizers.tokenizer_re import TokenizerRegexp
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


_tokenizer: Final = Tokenizer13a()  # type: ignore[no-untyped-call] # sacrebleu's class has no types


def _tokenize(text: str) -> str:
    try:
        tokens: str = _tokenizer(text)
    finally:
        # Without this, each of sacrebleu's two caches would keep up to 65,536 texts of any length.
        Tokenizer13a.__call__.cache_clear()
        TokenizerRegexp.__call__.cache_clear()
    return tokens


def _first_tokens(text: str) -> tuple[list[str], bool]:
    begun = text.strip()
    tokens = _tokenize(begun[:MAX_CHARACTERS]).split()
    return tokens[:MAX_WORDS], len(tokens) > MAX_WORDS or len(begun) > MAX_CHARACTERS


def _ngrams(tokens: list[str], length: int) -> Iterator[tuple[str, ...]]:
    return zip(*(tokens[start:] for start in range(length)), strict=False)


def _compute(prediction: list[str], references: list[list[str]], max_ngram: int) -> BLEUScore:
    correct, total = [], []
    for length in range(1, max_ngram + 1):
        predicted = Counter(_ngrams(prediction, length))
        # sacrebleu counts all n-grams of all references, which needs seconds for a thousand long references.
        allowed: Counter[tuple[str, ...]] = Counter()
        for reference in references:
            allowed |= Counter(ngram for ngram in _ngrams(reference, length) if ngram in predicted)
        correct.append((predicted & allowed).total())
        total.append(predicted.total())
    words = len(prediction)
    closest = min(map(len, references), key=lambda length: (abs(length - words), length))
    return BLEU.compute_bleu(
        correct, total, words, closest, smooth_method="exp", effective_order=True, max_ngram_order=max_ngram
    )


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
        found = _compute(prediction, references, parameters.max_ngram)
        return MetricResult(
            score=min(1.0, found.score / 100),
            warnings=cut_warning(prediction_cut, references_cut),
            parts=BleuParts(
                precisions=tuple(precision / 100 for precision in found.precisions),
                brevity_penalty=found.bp,
                prediction_words=found.sys_len,
                reference_words=found.ref_len,
            ),
        )
