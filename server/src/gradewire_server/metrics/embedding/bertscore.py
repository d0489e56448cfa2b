"""BERTScore: every token of prediction and reference matched with its closest one, by the encoder's token vectors.

Source: Zhang, Kishore, Wu, Weinberger and Artzi 2020, "BERTScore: Evaluating Text Generation with BERT", section 3; the
form that compares the question with either answer behind it is KNVQA-Eval's.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from gradewire_server.domain.item import Item, ReferenceEntry
from gradewire_server.domain.metric import MetricInfo, ModelMetadata, ParameterError
from gradewire_server.domain.needs import (
    Corpus,
    CorpusStatistics,
    DocumentFrequencies,
    EmbedTokens,
    Need,
    Preparation,
    Program,
    Terms,
    Tier,
    TokenVectors,
    ask,
)
from gradewire_server.domain.parts import BertscoreParts
from gradewire_server.domain.quoting import shortened
from gradewire_server.domain.result import Failure, MetricResult, Status
from gradewire_server.metrics.checks import check_item, check_question, check_references, cut_warning
from gradewire_server.metrics.embedding.bertscore_match import behind_question, match, rescaled, weights
from gradewire_server.metrics.parameters import (
    EncoderParameters,
    Measure,
)
from gradewire_server.metrics.rounds import ask_together
from gradewire_server.metrics.ties import first_of_the_highest

_ROUND_CHARACTERS: Final = 8192
"""References whose token vectors are held at a time: an item may have a thousand of them, 400 KB each."""
_COLUMN: Final = {Measure.PRECISION: 0, Measure.RECALL: 1, Measure.F1: 2}


@dataclass(frozen=True, slots=True)
class BertscoreParameters(EncoderParameters):
    """Parameters of `bertscore`.

    Attributes:
        measure: What becomes the score.
        layer: Hidden layer whose vectors are compared, 1 for the first; None becomes the model's own choice.
        idf: Which references the weights of rare tokens are counted over.
        rescale: Whether to stretch values so that unrelated texts come near 0.
        with_question: Whether the question stands before both answers.
    """

    measure: Measure = Measure.F1
    layer: int | None = None
    idf: Corpus = Corpus.NONE
    rescale: bool = False
    with_question: bool = False

    @property
    def corpus(self) -> Corpus:
        """Whose references the weights are counted over."""
        return self.idf

    def resolved(self, metadata: ModelMetadata) -> Self:
        """With layer and threshold filled in; ParameterError for a layer or a baseline that the model lacks."""
        layers = {each.number: each for each in metadata.token_layers}
        number = metadata.bertscore_layer if self.layer is None else self.layer
        if number not in layers:
            known = ", ".join(map(str, layers)) or "no layer"
            raise ParameterError("layer", f"this model gives token vectors of {known}, not of {number}")
        if self.rescale and layers[number].baseline is None:
            raise ParameterError(
                "rescale",
                f"the built model has no baseline for layer {number}; where the catalog has one, "
                "`gradewire models build` writes it; otherwise leave rescaling out",
            )
        return EncoderParameters.resolved(replace(self, layer=number), metadata)


class Bertscore:
    """Precision, recall and F1 of the reference with the highest measure; equal ones: the lowest index."""

    info = MetricInfo(
        name="bertscore",
        version=1,
        description="Tokens of prediction and references, each matched with the closest one of the other side.",
        minimum=-1.0,
        citation="Zhang, Kishore, Wu, Weinberger and Artzi 2020, BERTScore: Evaluating Text Generation with BERT, ICLR",
        needs_model=True,
    )
    parameters_type = BertscoreParameters

    def score(self, item: Item, parameters: BertscoreParameters, metadata: ModelMetadata) -> Program:
        """One round, or more where the references are long: token vectors, and the corpus where there are weights."""
        failure = check_item(item) or _check_question(item.question, parameters)
        if failure is not None:
            return MetricResult.failed(failure)
        found = yield from _compare(item, parameters)
        if isinstance(found, Failure):
            return MetricResult.failed(found)
        values = found.values
        if parameters.rescale:
            baselines = {layer.number: layer.baseline for layer in metadata.token_layers}
            values = rescaled(values, baselines[parameters.layer or 0])
        measured = values[:, _COLUMN[parameters.measure]]
        best = first_of_the_highest(measured)
        precision, recall, f1 = values[best].tolist()
        score = float(measured[best])
        return MetricResult(
            score=score,
            warnings=cut_warning(found.truncated),
            matched_reference=best,
            parts=BertscoreParts(precision, recall, f1, found.corpus),
            correct=None if parameters.threshold is None else score >= parameters.threshold,
        )

    def prepare(self, entry: ReferenceEntry, parameters: BertscoreParameters) -> Preparation:
        """Asks for the references' token vectors."""
        failure = check_references(entry.references) or _check_question(entry.question, parameters)
        if failure is not None:
            return failure
        for texts in _chunks(_sides(entry.question, entry.references, parameters)):
            answer = yield from ask(_tokens(texts, Tier.REFERENCE, parameters))
            if isinstance(answer, Failure):
                return answer
        return None


@dataclass(frozen=True, slots=True)
class _Found:
    """Precision, recall and F1 of each reference as `match` gives them, and what else is to be said."""

    values: NDArray[np.float64]
    truncated: bool
    corpus: str


def _compare(item: Item, parameters: BertscoreParameters) -> Generator[tuple[Need, ...], Any, _Found | Failure]:
    (text,) = _sides(item.question, (item.prediction,), parameters)
    first, *further = _chunks(_sides(item.question, item.references, parameters))
    statistics = () if parameters.idf is Corpus.NONE else (_statistics(parameters),)
    answers = yield from ask_together(
        _tokens((text,), Tier.PREDICTION, parameters), _tokens(first, Tier.REFERENCE, parameters), *statistics
    )
    if isinstance(answers, Failure):
        return answers
    (prediction,), references, *corpora = answers
    corpus: DocumentFrequencies | None = corpora[0] if corpora else None
    question_end = len(item.question) if parameters.with_question else 0
    failure = _check_corpus(corpus) or _check_prediction(prediction, corpus, question_end)
    if failure is not None:
        return failure
    blocks = [match(prediction, references, corpus, question_end)]
    truncated = prediction.truncated or any(each.truncated for each in references)
    for texts in further:
        references = yield from ask(_tokens(texts, Tier.REFERENCE, parameters))
        if isinstance(references, Failure):
            return references
        blocks.append(match(prediction, references, corpus, question_end))
        truncated |= any(each.truncated for each in references)
    values = np.concatenate(blocks)
    if not np.isfinite(values).any():
        return Failure(Status.INVALID_INPUT, "references: " + _why_weightless(corpus))
    return _Found(values, truncated, corpus.name if corpus else "")


def _check_question(question: str, parameters: BertscoreParameters) -> Failure | None:
    return check_question(question) if parameters.with_question else None


def _check_corpus(corpus: DocumentFrequencies | None) -> Failure | None:
    if corpus is None or corpus.documents > 1:
        return None
    return Failure(
        Status.INVALID_PARAMETER,
        f"idf: {shortened(corpus.name)} is a single reference, over which no token is rarer than another; score "
        "several questions in one request, prepare a set of them, or leave weights out",
    )


def _check_prediction(
    prediction: TokenVectors, corpus: DocumentFrequencies | None, question_end: int
) -> Failure | None:
    if weights(prediction, corpus, question_end).any():
        return None
    if not (prediction.ids >= 0).any():
        return Failure(Status.EMPTY_PREDICTION, "prediction: the encoder reads no token in it")
    return Failure(Status.INVALID_INPUT, "prediction: " + _why_weightless(corpus))


def _why_weightless(corpus: DocumentFrequencies | None) -> str:
    if corpus is None:
        return "nothing of it is read: it holds no token of the encoder, or the question before it takes all its room"
    return f"it has no token with a weight: each stands in all {corpus.documents} references of {corpus.name}"


def _sides(question: str, answers: Sequence[str], parameters: BertscoreParameters) -> tuple[str, ...]:
    return tuple(behind_question(question, each) for each in answers) if parameters.with_question else tuple(answers)


def _chunks(texts: Sequence[str]) -> list[tuple[str, ...]]:
    chunks: list[list[str]] = [[]]
    size = 0
    for text in texts:
        size += len(text)
        if chunks[-1] and size > _ROUND_CHARACTERS:
            chunks.append([])
            size = len(text)
        chunks[-1].append(text)
    return [tuple(chunk) for chunk in chunks]


def _tokens(texts: tuple[str, ...], tier: Tier, parameters: BertscoreParameters) -> EmbedTokens:
    return EmbedTokens(parameters.model, texts, tier, parameters.layer or 0)


def _statistics(parameters: BertscoreParameters) -> CorpusStatistics:
    # Over the very texts that are compared: in bare references a question's words would be the rarest of all.
    return CorpusStatistics(parameters.idf, Terms.TOKENS, parameters.model, with_question=parameters.with_question)
