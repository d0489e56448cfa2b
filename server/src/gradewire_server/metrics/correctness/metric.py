"""The metric `correctness`."""

import math
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Final, Self

import numpy as np

from gradewire_proto.parts import CorrectnessParts
from gradewire_proto.wire_rules import NO_GRADER
from gradewire_server.domain.items import (
    Failure,
    Item,
    MetricResult,
    ReferenceEntry,
    ResultWarning,
    Status,
    shortened,
)
from gradewire_server.domain.metric import (
    Calibration,
    MetricInfo,
    ModelMetadata,
    ParameterError,
    Parameters,
    graders_of,
)
from gradewire_server.domain.needs import MOST_PIECES, Grade, Preparation, Program, Rounds, ask
from gradewire_server.metrics.choices.choice_match import choice_of
from gradewire_server.metrics.choices.grading import Graded as GradedChoice
from gradewire_server.metrics.common import (
    FailureError,
    check_readable,
    cut_warning,
    embed_references,
    expect,
    preparing,
    scoring,
)
from gradewire_server.metrics.correctness.features import (
    FEATURES,
    GRADER,
    INPUT_KIND,
    VOTE_FEATURES,
    CorrectnessInputs,
    features,
    features_of,
    gather_inputs,
    input_kind,
    stating_sentences,
    vote_features,
)
from gradewire_server.metrics.correctness.fit import (
    VERDICT,
    VOTES,
    CorrectnessFit,
    cached_fit,
    check_fit_name,
    check_identity,
    fit_id,
    is_digits,
)
from gradewire_server.metrics.correctness.languages import is_unread
from gradewire_server.metrics.encoder.grader import graded_texts, is_shortened
from gradewire_server.metrics.text.normalise import lemmatizer, normalise

VERSION: Final = 3
_REMEDY: Final = "fit one with `gradewire calibrate FILE --metric correctness`"
_FEATURE_NAMES: Final = tuple(feature.name for feature in FEATURES)
_VOTE_NAMES: Final = tuple(feature.name for feature in VOTE_FEATURES)
MAX_REFERENCES: Final = 3
"""Maximum number of references for a grader."""


@dataclass(frozen=True, slots=True)
class Graded:
    """A grader's highest logit over the item's references.

    `truncated` is True if the grader read neither all of the answer nor the sentences that mention a reference, or not
    all of the question and the references.
    """

    logit: float
    truncated: bool


def ask_grader(inputs: CorrectnessInputs, grader: str) -> Rounds[Graded]:
    """Request the answer's grades against the closest references, and return the highest logit.

    Of an answer that is too long for the grader, the sentences that mention a reference (or those closest to the
    question) are graded, too.
    """
    references = closest_references(inputs)
    texts = graded_texts(inputs.item, references)
    grades = yield from expect(ask(Grade(grader, texts)))
    # For a few grades, lists are faster than arrays.
    logit, truncated = max(grades.logits.tolist()), grades.truncated.tolist()
    cut = True in truncated
    # A grade is also truncated if only the question or the reference is too long.
    if cut and any(
        each and pieces == MOST_PIECES for each, pieces in zip(truncated, grades.pieces.tolist(), strict=True)
    ):
        mentions = stating_sentences(inputs)
        shorter = tuple((question, reference, mentions) for question, reference, _ in texts)
        again = yield from expect(ask(Grade(grader, shorter)))
        logit, cut = max(logit, float(again.logits.max())), bool(again.truncated.any())
    return Graded(logit, cut or is_shortened(inputs.item, references))


def closest_references(inputs: CorrectnessInputs) -> tuple[int, ...]:
    """Return the indices of SMILE's best reference and of two others that share the most words with the answer.

    Vectors are not compared, because their last bits differ between batches.
    """
    references = inputs.item.references
    others = [index for index in range(len(references)) if index != inputs.best]
    if len(references) > MAX_REFERENCES:
        said = set(normalise(inputs.item.prediction).words)
        shares = {index: _share(references[index], said) for index in others}
        others.sort(key=lambda index: (-shares[index], index))
    return (inputs.best, *others[: MAX_REFERENCES - 1])


def _share(reference: str, said: set[str]) -> float:
    words = set(normalise(reference).words)
    return len(words & said) / len(words) if words else 0.0


@dataclass(frozen=True, slots=True)
class CorrectnessParameters(Parameters):
    """The parameters of `correctness` (see types.proto); `calibration` names the source of `fit`.

    Raises:
        ParameterError: `confidence` is out of range, or `fit` is neither 8 to 64 hex digits nor "votes".
    """

    model: str = ""
    confidence: float = 0.9
    features_only: bool = False
    grader: str = ""
    fit: str | None = None
    calibration: str = ""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.confidence) and 0.5 <= self.confidence < 1):
            raise ParameterError("confidence", f"must be a number from 0.5 to below 1, not {self.confidence}")
        if self.fit != VOTES:
            check_fit_name(self.fit)

    @classmethod
    def usual_graders(cls, metadata: ModelMetadata, fit: str = "") -> tuple[str, ...]:
        """Return the grader of the required fit or, if `fit` is "", the graders of the encoder's fits.

        A user's fits have precedence over the catalog's, and then a fit with a grader over a fit without.
        """
        fits = [each for each in metadata.calibrations if each.fit]
        required = [each for each in fits if fit and fit in {_name_of(each), _fit_id(each.fit)[: len(fit)]}]
        return graders_of(required or [each for each in fits if not _name_of(each)])

    def resolved(self, metadata: ModelMetadata) -> Self:
        """Return the parameters with the model's fit. `grader` becomes `NO_GRADER` if the usual grader is left out.

        Raises:
            ParameterError: The model's fit is missing or unusable, or is not the requested fit.
        """
        left_out = NO_GRADER if self.usual_graders(metadata) else ""
        named = self if metadata.grader else replace(self, grader=left_out)
        if named.features_only:
            return named
        check_readable(metadata)
        found = fit_of(metadata, self.fit)
        if isinstance(found, str):
            raise ParameterError("model", found)
        if self.fit != VOTES:
            check_identity(found.identity, self.fit)
        stored = _stored(metadata, self.fit)
        return replace(named, fit=found.identity, calibration=stored.described if stored else "")


class Correctness:
    """The probability that an answer is right, 0 to 1."""

    info = MetricInfo(
        name="correctness",
        version=VERSION,
        description="Probability that the answer is right, computed from SMILE's terms and text features with a fit on "
        "labelled answers; correct from 0.5, with the warning UNCERTAIN if the verdict is not reliable.",
        citation="gradewire, docs/reference/correctness.md; abstention: Vovk, Gammerman and Shafer 2005, Algorithmic "
        "Learning in a Random World",
        needs_model=True,
        grader_parameter="grader",
    )
    parameters_type = CorrectnessParameters

    def __init__(self) -> None:
        lemmatizer()  # read the dictionary at start, not during the first answer
        self._known_fit: tuple[ModelMetadata, str | None, CorrectnessFit | str] | None = None

    @scoring
    def score(self, item: Item, parameters: CorrectnessParameters, metadata: ModelMetadata) -> Program:
        """Run SMILE (preset one_pass), and the grader unless the parameters name none."""
        fit = None if parameters.features_only else self._fit_of(metadata, parameters.fit)
        if isinstance(fit, str):
            raise FailureError(Failure(Status.INVALID_PARAMETER, f"model: {fit}"))
        inputs = yield from gather_inputs(item, parameters.model)
        grader = parameters.grader if parameters.grader != NO_GRADER else ""
        graded = (yield from ask_grader(inputs, grader)) if grader else None
        votes = parameters.fit == VOTES if fit is None else fit.reads_votes
        result = _result(inputs, graded, fit, parameters.confidence, votes=votes)
        choice = None if fit is None else choice_of(item)
        return result if choice is None else _chosen(result, choice, parameters.confidence)

    def _fit_of(self, metadata: ModelMetadata, fit: str | None) -> CorrectnessFit | str:
        """Return the same as `fit_of`, which takes longer and has the same arguments for all items of a request."""
        known = self._known_fit  # read once: threads may score items of different requests
        if known is None or known[0] is not metadata or known[1] != fit:
            known = self._known_fit = metadata, fit, fit_of(metadata, fit)
        return known[2]

    @preparing
    def prepare(self, entry: ReferenceEntry, parameters: CorrectnessParameters) -> Preparation:
        """Request the vectors of the references and of their normalised forms, the keywords."""
        keywords = tuple(normalise(reference).text for reference in entry.references)
        return (yield from embed_references(parameters.model, entry.references + keywords))


_fit_id = lru_cache(maxsize=64)(fit_id)


def _name_of(calibration: Calibration) -> str:
    return dict(calibration.parameters).get("fit", "")


def _stored(metadata: ModelMetadata, fit: str | None) -> Calibration | None:
    """Return the fit that has this name or the beginning of whose ID is `fit`; otherwise the fit without a name."""
    grader = metadata.grader.partition("@")[0]
    fits = [each for each in metadata.calibrations if each.fit]
    of_grader = [each for each in fits if dict(each.parameters).get("grader", "") == grader]
    if is_digits(fit):
        required = (each for each in of_grader if _fit_id(each.fit).startswith(fit or ""))
        return next(required, _stored(metadata, None))
    return next((each for each in of_grader if _name_of(each) == (fit or "")), None)


def _message_without_fit(metadata: ModelMetadata) -> str:
    grader = shortened(metadata.grader.partition("@")[0])
    if grader:
        known = " and ".join(graders_of(metadata.calibrations))
        but, name = (f", but with {known}", f", name {known}") if known else ("", "")
        return (
            f"this encoder has no fit for correctness with grader {grader}{but}. Omit grader{name}, or fit one with "
            f"`gradewire calibrate FILE --metric 'correctness?grader={grader}'`"
        )
    old = next((version for metric, version in metadata.outdated if metric == "correctness"), None)
    if old is not None:
        return (
            f"this encoder's fit is for correctness/{old}, but this release computes correctness/{VERSION}. For a "
            f"catalog model, get the new fit with `gradewire models build NAME`. For any other model, {_REMEDY}"
        )
    return (
        f"this encoder has no fit for correctness: {_REMEDY}, or use a catalog model that has a fit (if an earlier "
        "release built the model, run `gradewire models build NAME` again)"
    )


def _message_without_votes(metadata: ModelMetadata) -> str:
    if any(_name_of(each) == VOTES for each in metadata.calibrations):
        return f"the fit {VOTES} works without a grader. Omit grader"
    return (
        f"this encoder has no fit {VOTES} for correctness. Omit fit, use a catalog model that has this fit (if an "
        "earlier release built the model, run `gradewire models build NAME` again), or fit one with "
        f"`gradewire calibrate FILE --metric 'correctness?fit={VOTES}'`"
    )


def fit_of(metadata: ModelMetadata, fit: str | None = None) -> CorrectnessFit | str:
    """Return the model's fit, or a message that says why there is no usable fit.

    `fit` is a fit's name or the first digits of its ID. No fit with these digits gives the model's usual fit.
    """
    stored = _stored(metadata, fit)
    if stored is None:
        return _message_without_votes(metadata) if fit == VOTES else _message_without_fit(metadata)
    grader, _, digest = metadata.grader.partition("@")
    found = cached_fit(stored.fit, features_of(grader, votes=_name_of(stored) == VOTES), VERSION)
    if isinstance(found, str):
        return f"this encoder's fit for correctness cannot be used ({found}): {_REMEDY} again"
    if found.form.model_digest != metadata.digest:
        return (
            f"this encoder's fit for correctness was made for an encoder with the digest "
            f"{found.form.model_digest[:12]}, but this encoder has {metadata.digest[:12]}: {_REMEDY} again"
        )
    if found.form.grader_digest != digest:
        return (
            f"this encoder's fit for correctness was made for a grader with the digest "
            f"{found.form.grader_digest[:12] or 'none'}, but {grader} has {digest[:12]}: {_REMEDY} again"
        )
    return found


def _result(
    inputs: CorrectnessInputs,
    graded: Graded | None,
    fit: CorrectnessFit | None,
    confidence: float,
    *,
    votes: bool = False,
) -> MetricResult:
    names, values, kind = _FEATURE_NAMES, features(inputs), input_kind(inputs)
    if votes:
        names, values = (*names, *_VOTE_NAMES), np.append(values, vote_features(inputs.item))
    if graded is not None:
        names, values = (*names, GRADER.name), np.append(values, graded.logit)
    found = dict(zip((*names, *INPUT_KIND), (*values.tolist(), *kind.tolist()), strict=True))
    terms = inputs.terms
    warnings = cut_warning(inputs.truncated, graded is not None and graded.truncated)
    parts = partial(
        CorrectnessParts,
        smile=inputs.smile,
        sentence=terms.sentence,
        keyword=terms.keyword,
        exact=terms.exact,
        best_window=terms.best_window,
        features={name: value for name, value in found.items() if value == value},  # noqa: PLR0124 - leave NaN out
    )
    if fit is None:
        return MetricResult(inputs.smile, warnings=warnings, matched_reference=inputs.best, parts=parts())
    position = fit.position_of(kind)
    probability = fit(values, position)
    if not math.isfinite(probability):
        message = f"the encoder's fit {fit.identity} returned no probability for this item: {_REMEDY} again"
        raise FailureError(Failure(Status.INTERNAL, message))
    band = fit.band(confidence, position)
    reason = ""
    if band.holds(probability):
        reason = "band" if fit.band(confidence).holds(probability) else "unlike"
    elif fit.overruled(values, position):
        reason = "rule"
    elif fit.doubted(values, probability):
        reason = "mention"
    elif probability >= VERDICT and is_unread(inputs.item):
        reason = "language"
    return MetricResult(
        probability,
        warnings=(*warnings, ResultWarning.UNCERTAIN) if reason else warnings,
        matched_reference=inputs.best,
        parts=parts(
            uncertain=bool(reason),
            band_lower=band.lower,
            band_upper=band.upper,
            fit=fit.identity,
            distance=None if position is None else position.distance,
            uncertain_reason=reason,
        ),
        correct=probability >= VERDICT,
    )


CHOICE_PRECISION: Final = 0.95
"""The probability that the verdict of a clear choice is right; between the first runs in docs/research/agreement.md."""
UNCLEAR_CHOICE: Final = 0.1
"""The probability that an answer is right although no single choice is found in it; an estimate, not measured."""


def _chosen(result: MetricResult, graded: GradedChoice, confidence: float) -> MetricResult:
    """Return the result of a multiple-choice question, in which the choice decides instead of the fit."""
    unclear = bool(graded.choice.reason)
    probability = UNCLEAR_CHOICE if unclear else CHOICE_PRECISION if graded.right else 1 - CHOICE_PRECISION
    uncertain = unclear or 1 - confidence <= probability <= confidence
    others = tuple(warning for warning in result.warnings if warning is not ResultWarning.UNCERTAIN)
    parts = result.parts
    if isinstance(parts, CorrectnessParts):
        parts = replace(
            parts,
            uncertain=uncertain,
            band_lower=1 - confidence,
            band_upper=confidence,
            distance=None,
            uncertain_reason="choice" if uncertain else "",
            choice=graded.choice.reason or ("right" if graded.right else "wrong"),
        )
    return replace(
        result,
        score=probability,
        warnings=(*others, ResultWarning.UNCERTAIN) if uncertain else others,
        matched_reference=graded.reference,
        parts=parts,
        correct=probability >= VERDICT,
    )
