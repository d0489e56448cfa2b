"""SMILE's parameters, presets and formula."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from gradewire_proto.choices import SmilePreset, SyntheticMode
from gradewire_proto.parts import SmileParts
from gradewire_server.domain.items import Item, MetricResult, ResultWarning
from gradewire_server.domain.metric import ModelMetadata, ParameterError, calibration_for, parameter_info
from gradewire_server.metrics.common import TIE, EncoderParameters, check_readable, cut_warning, first_of_the_highest
from gradewire_server.metrics.matching.containment import contained
from gradewire_server.metrics.smile.texts import SmileTexts
from gradewire_server.metrics.values.matching import match_values
from gradewire_server.metrics.values.reading import Outcome

_MAX_CACHED_OUTCOMES: Final = 8_192
_MAX_CACHED_CHARACTERS: Final = 1_024

CORRECT_BIN = 4
_TOP_BIN = 5


PRESET_WEIGHT: Final = {
    preset: float(parameter_info("smile", "sentence_weight").default_with(preset)) for preset in SmilePreset
}
"""The sentence term's weight by preset, from types.proto."""


@dataclass(frozen=True, slots=True)
class SmileParameters(EncoderParameters):
    """The parameters of `smile` (see types.proto); `calibration` names the source of a fitted weight or threshold.

    `resolved` sets a missing `sentence_weight` (0 to 1) from the model's fit or from the preset, and a missing
    `threshold` from a fit for this preset, mode and weight. Without a threshold, the score's bin determines the
    verdict (2/3, the paper's cut). With a weight of the caller's own, results then have the warning UNCALIBRATED.

    Raises:
        ParameterError: A value is invalid (see `EncoderParameters`), or `sentence_weight` is not a number from 0 to 1.
    """

    preset: SmilePreset = SmilePreset.V1
    synthetic: SyntheticMode = SyntheticMode.NONE
    sentence_weight: float | None = None

    def __post_init__(self) -> None:
        EncoderParameters.__post_init__(self)
        if self.sentence_weight is not None and not (
            math.isfinite(self.sentence_weight) and 0 <= self.sentence_weight <= 1
        ):
            raise ParameterError("sentence_weight", f"must be a number from 0 to 1, not {self.sentence_weight}")

    @property
    def weight(self) -> float:
        """`sentence_weight`, or the preset's weight if `sentence_weight` is None."""
        return PRESET_WEIGHT[self.preset] if self.sentence_weight is None else self.sentence_weight

    @property
    def is_uncalibrated(self) -> bool:
        """True if there is no threshold, and the weight is not the one to which the paper's cut belongs."""
        return self.threshold is None and not math.isclose(self.weight, PRESET_WEIGHT[self.preset])

    @property
    def reads_prepared(self) -> bool:
        """True if `synthetic` is PREPARED."""
        return self.synthetic is SyntheticMode.PREPARED

    def resolved(self, metadata: ModelMetadata) -> Self:
        """Fill in the weight and the threshold; a fitted threshold is valid only with the fitted weight.

        Raises:
            ParameterError: The weight or the threshold is unset, and the model's fit is unreadable.
        """
        if self.sentence_weight is not None and self.threshold is not None:
            return self
        check_readable(metadata)
        found = calibration_for(metadata.calibrations, self)
        if found is None and self.preset in {SmilePreset.FAST, SmilePreset.WHOLE}:
            # `fast` approximates `v1` closely enough to share fits. `whole` differs from `fast` only for answers
            # that `v1` does not read to the end.
            found = calibration_for(metadata.calibrations, replace(self, preset=SmilePreset.V1))
        if found is None:
            return replace(self, sentence_weight=self.weight)
        fitted = PRESET_WEIGHT[self.preset] if found.sentence_weight is None else found.sentence_weight
        weight = fitted if self.sentence_weight is None else self.sentence_weight
        threshold = found.threshold if self.threshold is None and math.isclose(weight, fitted) else self.threshold
        filled_in = (weight, threshold) != (self.weight, self.threshold)
        return replace(
            self, sentence_weight=weight, threshold=threshold, calibration=found.described if filled_in else ""
        )


def value_outcome(item: Item, matched_reference: int) -> str | None:
    """Compare the prediction's values with a reference's values. Return None if the reference has no values."""
    texts = item.question, item.references[matched_reference], item.prediction
    short = sum(map(len, texts)) <= _MAX_CACHED_CHARACTERS
    outcome = _cached_outcome(*texts) if short else match_values(*texts).outcome
    return None if outcome is None else outcome.value


@lru_cache(maxsize=_MAX_CACHED_OUTCOMES)
def _cached_outcome(question: str, reference: str, prediction: str) -> Outcome | None:
    return match_values(question, reference, prediction).outcome


@dataclass(frozen=True, slots=True)
class Keyword:
    """The cosine of a reference's closest window, -1 to 1, and the window's words."""

    cosine: float
    window: str


def smile_bin(score: float) -> int:
    """Return floor(6 · score), limited to 0 … 5."""
    return max(0, min(_TOP_BIN, math.floor(6 * score)))


# For an item's few references, plain Python is ten times as fast as numpy.


def exact_terms(texts: SmileTexts, preset: SmilePreset) -> list[float]:
    """Return, for each reference, the share (0 to 1) of its distinct normalised words that the prediction contains.

    With REFERENCE_CODE, a repeated word counts each time. With PAPER, the term is 1 if the normalised prediction
    contains the whole normalised reference, otherwise 0.
    """
    if preset is SmilePreset.PAPER:
        return [float(each) for each in contained(texts.words, texts.keywords)]
    said = set(texts.words.words)
    if preset is SmilePreset.REFERENCE_CODE:
        return [sum(word in said for word in keyword.words) / len(keyword.words) for keyword in texts.keywords]
    wanted = [set(keyword.words) for keyword in texts.keywords]
    return [len(words & said) / len(words) for words in wanted]


@dataclass(frozen=True, slots=True)
class Similarities:
    """The prediction's cosine with each reference's sentence, and the keyword terms by reference index.

    Keyword terms of references that cannot win may be missing (see `can_still_win`).
    """

    sentences: Sequence[float]
    keywords: Mapping[int, Keyword]
    truncated: bool

    def joined_by(self, keywords: Mapping[int, Keyword], *, truncated: bool) -> "Similarities":
        """Return a copy with additional keyword terms."""
        return Similarities(self.sentences, {**self.keywords, **keywords}, self.truncated or truncated)


def held_keywords(texts: SmileTexts) -> dict[int, Keyword]:
    """Return the keyword term, with cosine 1, of each reference that equals a window."""
    return {index: Keyword(1.0, texts.keywords[index].text) for index in texts.held}


def closest_windows(
    texts: SmileTexts,
    windows: Mapping[int, Sequence[str]],
    vectors: NDArray[np.float32],
    keywords: NDArray[np.float32],
) -> dict[int, Keyword]:
    """Return the keyword terms of `texts.open_references` by index; ties go to the first window.

    `windows` has the distinct windows of each length in `texts.rows_of`, in order of position, and `vectors` has their
    vectors, float32[windows of all lengths, dims]. `keywords` are the vectors of `texts.open_keywords`, float32[open,
    dims]. All rows have length 1.
    """
    cosines = {}
    start = 0
    for length, rows in texts.rows_of.items():
        stop = start + len(windows[length])
        cosines[length] = vectors[start:stop] @ keywords[rows].T
        start = stop
    return closest_of(texts, windows, cosines)


def closest_of(
    texts: SmileTexts, windows: Mapping[int, Sequence[str]], cosines: Mapping[int, NDArray[np.float32]]
) -> dict[int, Keyword]:
    """Return the same from cosines by length, float32[windows, references], in the order of `texts.rows_of`."""
    found = {}
    for length, rows in texts.rows_of.items():
        highest = cosines[length].max(axis=0)
        first = (cosines[length] >= highest - TIE).argmax(axis=0)  # like `first_of_the_highest` for each column
        for row, cosine, best in zip(rows, highest.tolist(), first.tolist(), strict=True):
            found[texts.open_references[row]] = Keyword(cosine, windows[length][best])
    return found


def can_still_win(
    texts: SmileTexts,
    sentences: Sequence[float],
    parameters: SmileParameters,
    bounds: Mapping[int, tuple[float, float]] = MappingProxyType({}),
) -> tuple[int, ...]:
    """Return the `texts.open_references` that can match or beat all other references.

    The other open references would have a lower score even with the highest possible keyword cosine. `bounds` are the
    lowest and the highest possible keyword cosine of some open references, by index; all others' bounds are -1 and 1.
    """
    if not texts.open_references or not (texts.held or bounds):
        return texts.open_references
    preset, weight = parameters.preset, parameters.weight
    exact = exact_terms(texts, preset)

    def score(index: int, cosine: float) -> float:
        return _score(_similarity(sentences[index], preset), exact[index], _similarity(cosine, preset), weight)

    known = {**dict.fromkeys(texts.held, (1.0, 1.0)), **bounds}
    least = max(score(index, lowest) for index, (lowest, _) in known.items()) - 2 * TIE
    return tuple(index for index in texts.open_references if score(index, known.get(index, (-1.0, 1.0))[1]) >= least)


def grade(
    texts: SmileTexts, similarities: Similarities, parameters: SmileParameters, item: Item | None = None
) -> MetricResult:
    """Return the best reference's score and its parts; ties go to the first reference.

    With an `item`, the parts contain the result of `value_outcome`.
    """
    preset, weight, threshold = parameters.preset, parameters.weight, parameters.threshold
    indices = sorted(similarities.keywords)
    sentence = [_similarity(similarities.sentences[index], preset) for index in indices]
    keyword = [_similarity(similarities.keywords[index].cosine, preset) for index in indices]
    terms = exact_terms(texts, preset)
    exact = [terms[index] for index in indices]
    scores = [_score(*each, weight) for each in zip(sentence, exact, keyword, strict=True)]
    best = first_of_the_highest(scores)
    score, s, lex = scores[best], sentence[best], (exact[best] + keyword[best]) / 2
    bin_ = smile_bin(score)
    correct = bin_ >= CORRECT_BIN if threshold is None else score >= threshold
    warnings = cut_warning(similarities.truncated)
    return MetricResult(
        score=score,
        warnings=(*warnings, ResultWarning.UNCALIBRATED) if parameters.is_uncalibrated else warnings,
        matched_reference=indices[best],
        correct=correct,
        parts=SmileParts(
            sentence=s,
            keyword=keyword[best],
            exact=exact[best],
            lexical=lex,
            best_window=similarities.keywords[indices[best]].window,
            bin=bin_,
            correct=correct,
            harmonic_mean=harmonic_mean(s, lex) if preset is SmilePreset.REFERENCE_CODE else None,
            value_outcome=value_outcome(item, indices[best]) if item else None,
        ),
    )


def _score(sentence: float, exact: float, keyword: float, weight: float) -> float:
    return weight * sentence + (1 - weight) * (exact + keyword) / 2


def harmonic_mean(sentence: float, lexical: float) -> float | None:
    """Return 2sl / (s + l), or None if a term is negative or both terms are 0."""
    if sentence < 0 or lexical < 0 or sentence + lexical == 0:
        return None
    return 2 * sentence * lexical / (sentence + lexical)


def _similarity(cosine: float, preset: SmilePreset) -> float:
    clipped = max(-1.0, min(1.0, cosine))
    return clipped if preset is SmilePreset.REFERENCE_CODE else (1.0 + clipped) / 2.0
