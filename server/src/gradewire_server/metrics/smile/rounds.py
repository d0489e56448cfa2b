"""What SMILE asks the encoder, in which rounds.

Windows are nearly all of SMILE's cost, so none is embedded that cannot change the result. Where N(r) stands in N(y)
word for word, that reference's keyword similarity is 1; its score is known from sentence vectors alone, and the other
references' windows are looked at only if those could still match it.
"""

from collections.abc import Generator
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gradewire_server.domain.needs import Embed, EmbedRoughly, EmbedTokens, Need, Tier, Vectors, ask
from gradewire_server.domain.result import Failure
from gradewire_server.metrics.rounds import ask_together, is_cut, sentence_needs
from gradewire_server.metrics.smile.formula import Similarities, can_still_win, closest_windows, held_keywords
from gradewire_server.metrics.smile.parameters import SmileParameters, SmilePreset
from gradewire_server.metrics.smile.possible_windows import FEW_WINDOWS, possibly_closest
from gradewire_server.metrics.smile.shortlist import needs_ranking, shortlist
from gradewire_server.metrics.smile.texts import SmileTexts
from gradewire_server.metrics.smile.words_in_context import closest_in_context

_Asking: TypeAlias = Generator[tuple[Need, ...], Any, Similarities | Failure]


def gather(texts: SmileTexts, parameters: SmileParameters, *, rough_error: float | None = None) -> _Asking:
    """Asks for all that the score of `texts` rests on; a Failure where the encoder fails.

    Args:
        texts: The item's texts.
        parameters: The metric's.
        rough_error: As `ModelMetadata.rough_cosine_error`.
    """
    if not texts.held:
        return (yield from _look(texts, parameters, None, rough_error))
    answers = yield from ask_together(*sentence_needs(parameters.model, texts.prediction, texts.sentences))
    if isinstance(answers, Failure):
        return answers
    prediction, sentences = answers
    known = Similarities(
        sentences=_cosines(prediction.values[0], sentences),
        keywords=held_keywords(texts),
        truncated=texts.windows.truncated or is_cut(prediction, sentences),
    )
    rest = texts.asking(can_still_win(texts, known.sentences, parameters))
    return (yield from _look(rest, parameters, known, rough_error)) if rest.asked else known


def _look(
    texts: SmileTexts, parameters: SmileParameters, known: Similarities | None, rough_error: float | None
) -> _Asking:
    """Asks for the windows that `texts` asks about, and for the sentences unless they are `known`."""
    if parameters.preset is SmilePreset.ONE_PASS or (parameters.preset is SmilePreset.FAST and needs_ranking(texts)):
        return (yield from _in_context(texts, parameters, known))
    return (yield from _all_windows(texts, parameters, known, rough_error))


def _all_windows(
    texts: SmileTexts, parameters: SmileParameters, known: Similarities | None, rough_error: float | None
) -> _Asking:
    windows = texts.candidates
    every = tuple(chain.from_iterable(windows.values()))
    is_rough = rough_error is not None and len(every) > FEW_WINDOWS
    answers = yield from ask_together(
        Embed(parameters.model, texts.asked_keywords, Tier.REFERENCE),
        EmbedRoughly(parameters.model, every) if is_rough else Embed(parameters.model, every, Tier.WINDOW),
        *(() if known else sentence_needs(parameters.model, texts.prediction, texts.sentences)),
    )
    if isinstance(answers, Failure):
        return answers
    keywords, vectors, *rest = answers
    if known is None:
        prediction, sentences = rest
        cosines = _cosines(prediction.values[0], sentences)
        known = Similarities(cosines, {}, texts.windows.truncated or is_cut(prediction, sentences))
    truncated = is_cut(keywords, vectors)
    if is_rough and rough_error is not None:
        windows = possibly_closest(texts, vectors.values, keywords.values, error=rough_error)
        vectors = yield from ask(Embed(parameters.model, tuple(chain.from_iterable(windows.values())), Tier.WINDOW))
        if isinstance(vectors, Failure):
            return vectors
    closest = closest_windows(texts, windows, vectors.values, keywords.values)
    return known.joined_by(closest, truncated=truncated)


def _in_context(texts: SmileTexts, parameters: SmileParameters, known: Similarities | None) -> _Asking:
    answers = yield from ask_together(
        Embed(parameters.model, texts.asked_keywords, Tier.REFERENCE),
        EmbedTokens(parameters.model, (texts.prediction,), Tier.PREDICTION),
        *(() if known else (Embed(parameters.model, texts.sentences, Tier.REFERENCE),)),
    )
    if isinstance(answers, Failure):
        return answers
    keywords, (prediction,), *rest = answers
    if known is None:
        (sentences,) = rest
        cosines = _cosines(prediction.sentence, sentences)
        known = Similarities(cosines, {}, texts.windows.truncated or prediction.truncated or is_cut(sentences))
    if parameters.preset is SmilePreset.ONE_PASS:
        closest = closest_in_context(texts, prediction, keywords.values)
        return known.joined_by(closest, truncated=is_cut(keywords))
    windows = shortlist(texts, prediction, keywords.values)
    vectors = yield from ask(Embed(parameters.model, tuple(chain.from_iterable(windows.values())), Tier.WINDOW))
    if isinstance(vectors, Failure):
        return vectors
    closest = closest_windows(texts, windows, vectors.values, keywords.values)
    return known.joined_by(closest, truncated=is_cut(keywords, vectors))


def _cosines(prediction: NDArray[np.float32], sentences: Vectors) -> list[float]:
    found: list[float] = (sentences.values @ prediction).tolist()
    return found
