"""BERTScore: greedy token matching by cosine, for one prediction and many references at once.

Source: Zhang et al. 2020, "BERTScore", equations of section 3 (recall, precision, F1, importance weighting, baseline
rescaling). As in the package bert-score 0.3.13, the special tokens around a text have no weight, but may be matched.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from gradewire_proto.choices import Corpus, Measure
from gradewire_proto.parts import BertscoreParts
from gradewire_server.domain.items import Failure, Item, MetricResult, ReferenceEntry, Status, shortened
from gradewire_server.domain.metric import MetricInfo, ModelMetadata, ParameterError
from gradewire_server.domain.needs import (
    CorpusStatistics,
    DocumentFrequencies,
    EmbedTokens,
    Preparation,
    Program,
    Rounds,
    Terms,
    Tier,
    TokenVectors,
    ask,
)
from gradewire_server.metrics.common import (
    EncoderParameters,
    FailureError,
    ask_together,
    check_question,
    cut_warning,
    expect,
    first_of_the_highest,
    preparing,
    scoring,
    stop_at,
)

_TINY = 1e-12

_ROUND_CHARACTERS: Final = 8192
"""Maximum number of reference characters in a round, because a reference's token vectors may take 400 KB."""
_COLUMN: Final = {Measure.PRECISION: 0, Measure.RECALL: 1, Measure.F1: 2}


def match(
    prediction: TokenVectors, references: Sequence[TokenVectors], corpus: DocumentFrequencies | None, question_end: int
) -> NDArray[np.float64]:
    """Compare a prediction with each reference. At least one token of the prediction must have a weight.

    With a `corpus`, rare tokens weigh more; None means equal weights. See `weights` for `question_end`.

    Returns:
        float64[references, 3]: precision, recall and F1, each from -1 to 1. F1 is 0 unless precision and recall are
        positive. A reference without weighted tokens has a row of -inf.
    """
    values = np.full((len(references), 3), -np.inf)
    weighed = [weights(reference, corpus, question_end) for reference in references]
    having = [index for index, each in enumerate(weighed) if each.any()]
    if not having:
        return values
    starts = np.cumsum([0, *(len(weighed[index]) for index in having[:-1])])
    cosines = _unit(prediction.tokens) @ _unit(np.concatenate([references[index].tokens for index in having])).T
    own = weights(prediction, corpus, question_end)
    precision = own @ np.maximum.reduceat(cosines, starts, axis=1) / own.sum()
    theirs = np.concatenate([weighed[index] for index in having])
    recall = np.add.reduceat(theirs * cosines.max(axis=0), starts) / np.add.reduceat(theirs, starts)
    both = (precision > 0) & (recall > 0)
    f1 = np.divide(2 * precision * recall, precision + recall, out=np.zeros_like(recall), where=both)
    values[having] = np.stack((precision, recall, f1), axis=1).clip(-1.0, 1.0)
    return values


def behind_question(question: str, answer: str) -> str:
    """Put the question before an answer."""
    return f"{question} {answer}"


def weights(text: TokenVectors, corpus: DocumentFrequencies | None, question_end: int) -> NDArray[np.float64]:
    """Return the weight of each token, at least 0.

    All weights are 0 if the text was cut before its answer begins. `question_end` is the length of the question before
    the answer, in characters; 0 means that there is no question.
    """
    counted = text.ids >= 0
    if not (counted & (text.offsets[:, 1] > question_end)).any():
        return np.zeros(len(counted))
    if corpus is None:
        return counted.astype(np.float64)
    ids, places = np.unique(text.ids, return_inverse=True)
    documents = np.array([corpus.counts.get(number, 0) for number in ids.tolist()], np.float64)
    return np.where(counted, np.log((corpus.documents + 1) / (documents + 1))[places], 0.0)


def rescaled(values: NDArray[np.float64], baseline: tuple[float, float, float] | None) -> NDArray[np.float64]:
    """Rescale the values of `match` so that the baseline for unrelated texts becomes 0, and 1 stays 1."""
    base = np.array(baseline, np.float64)
    return np.asarray((values - base) / (1 - base), np.float64)


def _unit(tokens: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.sqrt(np.einsum("ij,ij->i", tokens, tokens))
    return np.asarray(tokens / np.maximum(lengths, _TINY)[:, None], np.float32)


@dataclass(frozen=True, slots=True)
class BertscoreParameters(EncoderParameters):
    """The parameters of `bertscore` (see types.proto). If `layer` is None, `resolved` sets the default layer."""

    measure: Measure = Measure.F1
    layer: int | None = None
    idf: Corpus = Corpus.NONE
    rescale: bool = False
    with_question: bool = False

    @property
    def corpus(self) -> Corpus:
        """The corpus that determines the weights."""
        return self.idf

    def resolved(self, metadata: ModelMetadata) -> Self:
        """Fill in the layer and the threshold.

        Raises:
            ParameterError: The model lacks the layer or the layer's baseline, or the model's fit is unreadable.
        """
        layers = {each.number: each for each in metadata.token_layers}
        number = metadata.bertscore_layer if self.layer is None else self.layer
        if number not in layers:
            known = ", ".join(map(str, layers)) or "no layer"
            raise ParameterError("layer", f"this model has no token vectors for layer {number}, only for {known}")
        if self.rescale and layers[number].baseline is None:
            raise ParameterError(
                "rescale",
                f"the built model has no baseline for layer {number}. If the catalog has a baseline, "
                "run `gradewire models build`; otherwise omit rescale",
            )
        return EncoderParameters.resolved(replace(self, layer=number), metadata)


class Bertscore:
    """Precision, recall and F1 with the best reference by `measure`; ties go to the first reference."""

    info = MetricInfo(
        name="bertscore",
        version=1,
        description="Similarity of tokens in prediction and reference, each matched with its closest counterpart.",
        minimum=-1.0,
        has_verdict=False,
        citation="Zhang, Kishore, Wu, Weinberger and Artzi 2020, BERTScore: Evaluating Text Generation with BERT, ICLR",
        needs_model=True,
    )
    parameters_type = BertscoreParameters

    @scoring
    def score(self, item: Item, parameters: BertscoreParameters, metadata: ModelMetadata) -> Program:
        """Grade in one round, or in several rounds for long references."""
        stop_at(_check_question(item.question, parameters))
        values, truncated, corpus = yield from _compare(item, parameters)
        if parameters.rescale:
            baselines = {layer.number: layer.baseline for layer in metadata.token_layers}
            values = rescaled(values, baselines[parameters.layer or 0])
        measured = values[:, _COLUMN[parameters.measure]]
        best = first_of_the_highest(measured)
        precision, recall, f1 = values[best].tolist()
        score = float(measured[best])
        return MetricResult(
            score=score,
            warnings=cut_warning(truncated),
            matched_reference=best,
            parts=BertscoreParts(precision, recall, f1, corpus),
            correct=None if parameters.threshold is None else score >= parameters.threshold,
        )

    @preparing
    def prepare(self, entry: ReferenceEntry, parameters: BertscoreParameters) -> Preparation:
        """Request the references' token vectors."""
        stop_at(_check_question(entry.question, parameters))
        for texts in _chunks(_sides(entry.question, entry.references, parameters)):
            yield from expect(ask(_tokens(texts, Tier.REFERENCE, parameters)))
        return None


def _compare(item: Item, parameters: BertscoreParameters) -> Rounds[tuple[NDArray[np.float64], bool, str]]:
    """Return the values of `match`, True if a text was cut, and the corpus's name."""
    (text,) = _sides(item.question, (item.prediction,), parameters)
    first, *further = _chunks(_sides(item.question, item.references, parameters))
    # Count tokens in references with their questions. Otherwise, the questions' words would be the rarest.
    counted = CorpusStatistics(parameters.idf, Terms.TOKENS, parameters.model, with_question=parameters.with_question)
    statistics = () if parameters.idf is Corpus.NONE else (counted,)
    (prediction,), references, *corpora = yield from ask_together(
        _tokens((text,), Tier.PREDICTION, parameters), _tokens(first, Tier.REFERENCE, parameters), *statistics
    )
    corpus: DocumentFrequencies | None = corpora[0] if corpora else None
    question_end = len(item.question) if parameters.with_question else 0
    stop_at(_check_corpus(corpus) or _check_prediction(prediction, corpus, question_end))
    blocks = [match(prediction, references, corpus, question_end)]
    truncated = prediction.truncated or any(each.truncated for each in references)
    for texts in further:
        references = yield from expect(ask(_tokens(texts, Tier.REFERENCE, parameters)))
        blocks.append(match(prediction, references, corpus, question_end))
        truncated |= any(each.truncated for each in references)
    values = np.concatenate(blocks)
    if not np.isfinite(values).any():
        raise FailureError(Failure(Status.INVALID_INPUT, "references: " + _why_weightless(corpus)))
    return values, truncated, corpus.name if corpus else ""


def _check_question(question: str, parameters: BertscoreParameters) -> Failure | None:
    return check_question(question) if parameters.with_question else None


def _check_corpus(corpus: DocumentFrequencies | None) -> Failure | None:
    if corpus is None or corpus.documents > 1:
        return None
    return Failure(
        Status.INVALID_PARAMETER,
        f"idf: {shortened(corpus.name)} contains only one reference, so all tokens are equally rare. Score several "
        "questions in one request, prepare a set of several questions, or omit idf",
    )


def _check_prediction(
    prediction: TokenVectors, corpus: DocumentFrequencies | None, question_end: int
) -> Failure | None:
    if weights(prediction, corpus, question_end).any():
        return None
    if not (prediction.ids >= 0).any():
        return Failure(Status.EMPTY_PREDICTION, "prediction: contains no token that the encoder knows")
    return Failure(Status.INVALID_INPUT, "prediction: " + _why_weightless(corpus))


def _why_weightless(corpus: DocumentFrequencies | None) -> str:
    if corpus is None:
        return "has no tokens that the encoder reads, or the question before the answer fills the encoder's input"
    return f"has no token with a weight, since each token is in all {corpus.documents} references of {corpus.name}"


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
