"""SMILE: sentence similarity, best keyword window and exact words in one score.

Source: "SMILE: A Composite Lexical-Semantic Metric for Question-Answering Evaluation"; docs/scores.md settles
what it leaves open.
"""

from collections.abc import Mapping
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from gradewire_server.domain.item import Item, ReferenceEntry
from gradewire_server.domain.metric import Calibration, MetricInfo, ParameterInfo
from gradewire_server.domain.needs import Embed, EmbedTokens, Preparation, Program, Tier, ask
from gradewire_server.domain.result import Failure, MetricResult
from gradewire_server.metrics.checks import check_item, check_references
from gradewire_server.metrics.lemmas import lemmatizer
from gradewire_server.metrics.parameters import MODEL_INFO, SmileParameters, SmilePreset, SyntheticMode
from gradewire_server.metrics.rounds import ask_together
from gradewire_server.metrics.smile_fast import needs_ranking, shortlist
from gradewire_server.metrics.smile_formula import Candidates, Evidence, grade
from gradewire_server.metrics.smile_texts import SmileTexts, reference_sentences, smile_texts
from gradewire_server.metrics.words import normalise


class Smile:
    """The metric `smile` with its four presets."""

    info = MetricInfo(
        name="smile",
        version=1,
        description="Sentence similarity, best keyword window and exact words in one score; correct from 2/3.",
        minimum=-1.0,
        maximum=1.0,
        higher_is_better=True,
        citation="SMILE: A Composite Lexical-Semantic Metric for Question-Answering Evaluation, 2025",
        parameters=(
            ParameterInfo("preset", "Variant of the formula.", SmilePreset.V1, ", ".join(SmilePreset)),
            ParameterInfo(
                "synthetic",
                "What the sentence term compares with: the reference, its inline or its prepared synthetic answer.",
                SyntheticMode.NONE,
                ", ".join(SyntheticMode),
            ),
            ParameterInfo("sentence_weight", "Weight of the sentence term.", "0.3; 0.5 for reference_code", "0 to 1"),
            MODEL_INFO,
        ),
        needs_model=True,
    )
    parameters_type = SmileParameters

    def __init__(self) -> None:
        lemmatizer()  # read the dictionary at start, not under the first answer

    def score(self, item: Item, parameters: SmileParameters, calibration: Calibration | None) -> Program:
        """One round; two where `fast` ranks windows; one more before them where synthetic answers are prepared ones."""
        failure = check_item(item)
        if failure is not None:
            return MetricResult.failed(failure)
        sentences = yield from reference_sentences(
            parameters.synthetic, item.question, item.references, item.synthetic_answers
        )
        if isinstance(sentences, Failure):
            return MetricResult.failed(sentences)
        texts = smile_texts(item.prediction, item.references, sentences)
        if parameters.preset is SmilePreset.FAST and needs_ranking(texts):
            return (yield from _ranked(texts, parameters, calibration))
        return (yield from _all_windows(texts, parameters, calibration))

    def prepare(self, entry: ReferenceEntry, parameters: SmileParameters) -> Preparation:
        """Asks for the sentence and the keywords of every reference."""
        failure = check_references(entry.references)
        if failure is not None:
            return failure
        sentences = yield from reference_sentences(
            parameters.synthetic, entry.question, entry.references, entry.synthetic_answers
        )
        if isinstance(sentences, Failure):
            return sentences
        keywords = tuple(normalise(reference).text for reference in entry.references)
        vectors = yield from ask(Embed(parameters.model, sentences + keywords, Tier.REFERENCE))
        return vectors if isinstance(vectors, Failure) else None


def _all_windows(texts: SmileTexts, parameters: SmileParameters, calibration: Calibration | None) -> Program:
    windows = tuple(chain.from_iterable(texts.windows.by_length.values()))
    answers = yield from ask_together(
        Embed(parameters.model, (texts.prediction,), Tier.PREDICTION),
        Embed(parameters.model, texts.reference_texts, Tier.REFERENCE),
        Embed(parameters.model, windows, Tier.WINDOW),
    )
    if isinstance(answers, Failure):
        return MetricResult.failed(answers)
    prediction, references, vectors = answers
    evidence = Evidence(
        prediction=prediction.values[0],
        references=references.values,
        candidates=_by_length(texts.windows.by_length, vectors.values),
        truncated=texts.windows.truncated or any(answer.truncated.any() for answer in answers),
    )
    return grade(texts, evidence, parameters, calibration)


def _ranked(texts: SmileTexts, parameters: SmileParameters, calibration: Calibration | None) -> Program:
    answers = yield from ask_together(
        EmbedTokens(parameters.model, (texts.prediction,), Tier.PREDICTION),
        Embed(parameters.model, texts.reference_texts, Tier.REFERENCE),
    )
    if isinstance(answers, Failure):
        return MetricResult.failed(answers)
    (prediction,), references = answers
    chosen = shortlist(texts, prediction, references.values[len(texts.keywords) :])
    windows = tuple(chain.from_iterable(chosen.values()))
    vectors = yield from ask(Embed(parameters.model, windows, Tier.WINDOW))
    if isinstance(vectors, Failure):
        return MetricResult.failed(vectors)
    evidence = Evidence(
        prediction=prediction.sentence,
        references=references.values,
        candidates=_by_length(chosen, vectors.values),
        truncated=(
            texts.windows.truncated
            or prediction.truncated
            or bool(references.truncated.any())
            or bool(vectors.truncated.any())
        ),
    )
    return grade(texts, evidence, parameters, calibration)


def _by_length(windows: Mapping[int, tuple[str, ...]], vectors: NDArray[np.float32]) -> dict[int, Candidates]:
    """Cuts the vectors of all windows, embedded length by length, into one block per length."""
    start = 0
    blocks = {}
    for length, texts in windows.items():
        blocks[length] = Candidates(texts, vectors[start : start + len(texts)])
        start += len(texts)
    return blocks
