"""Metric `auto`, which asks a judge only if choice match, exact match and `correctness` are not sure."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Final

from gradewire_proto.parts import AutoParts, CorrectnessParts
from gradewire_server.domain.items import Failure, Item, MetricResult, ReferenceEntry, ResultWarning, Status
from gradewire_server.domain.metric import NO_MODEL, MetricInfo, ModelMetadata
from gradewire_server.domain.needs import Preparation, Program
from gradewire_server.metrics.choices.choice_match import choice_of
from gradewire_server.metrics.common import FailureError, check_question, scoring, stop_at
from gradewire_server.metrics.correctness.metric import CHOICE_PRECISION, Correctness, CorrectnessParameters
from gradewire_server.metrics.judged.auto_fit import EXACT, JUDGED, VERSION, AutoFit, AutoParameters, Band, find_fit
from gradewire_server.metrics.judged.prompt import check_judged
from gradewire_server.metrics.matching.exact_match import ExactMatch
from gradewire_server.metrics.matching.value_match import vetoes_text_match

_RANGE: Final = 2.0**64

CONFIDENCE_OF_FITS: Final = 0.5
"""The confidence that `auto` requests from `correctness`. At 0.5, only a rule or a doubt gives UNCERTAIN."""
_EXACT_MATCH: Final = ExactMatch()
_SYMBOL: Final = re.compile(r"[A-Z]|[A-Z][a-z]|\w[A-Z]\w?|\w\w[A-Z]")
"""A symbol of up to three letters, in which case means something: "K", "Co", "mW"."""
_AROUND: Final = " .!\"'`*"
_ARTICLE: Final = re.compile(r"^(?:the|an?)\s+", re.IGNORECASE)


def is_sampled(item: Item, share: float, seed: int) -> bool:
    """Return True if an answer is in the sample, which contains a `share` (0 to 1) of all answers.

    Different seeds give independent samples. The item's ID and group have no influence.
    """
    if share <= 0:
        return False
    said = json.dumps([seed, item.question, item.references, item.prediction, item.captions], ensure_ascii=True)
    drawn = int.from_bytes(blake2b(said.encode("ascii"), digest_size=8, person=b"auto sample").digest(), "big")
    return drawn < share * _RANGE


@dataclass(frozen=True, slots=True)
class _Cheap:
    """An OK result of a metric that needs no judge; `by` is the metric's name. `confidence` is EXACT, or 0.5 to 1."""

    by: str
    result: MetricResult
    confidence: float


class Auto:
    """A cascade of metrics, in which the first metric that is sure enough gives the verdict."""

    info = MetricInfo(
        name="auto",
        version=VERSION,
        description="Verdict of choice_match, exact_match or correctness if an error bound fitted on labelled answers "
        "accepts it; otherwise a judge's verdict, if the judge was better on these answers. The result names the "
        "deciding metric.",
        citation="gradewire, docs/reference/auto.md; bound: Angelopoulos et al. 2021, Learn then Test",
        needs_model=True,
        judge_parameter="judge_model",
        built_on=(Correctness.info,),
    )
    parameters_type = AutoParameters

    def __init__(self) -> None:
        self._correctness = Correctness()

    @scoring
    def score(self, item: Item, parameters: AutoParameters, metadata: ModelMetadata) -> Program:
        """Run choice match, then exact match, then `correctness` if neither decides, then the judge if needed."""
        stop_at(check_judged(item))
        found = find_fit(metadata, parameters)
        if isinstance(found, str):
            raise FailureError(Failure(Status.INVALID_PARAMETER, f"model: {found}"))
        fit, band = found[0], found[0].band(parameters)
        choice = choice_of(item)
        matched = yield from _EXACT_MATCH.score(item, ExactMatch.parameters_type(), NO_MODEL)
        if choice is not None and not choice.choice.reason:
            cheap = _Cheap("choice_match", choice.result, CHOICE_PRECISION)
        elif choice is None and matched.correct and _is_exact(item):
            cheap = _Cheap("exact_match", matched, EXACT)
        else:
            own = CorrectnessParameters(parameters.model, CONFIDENCE_OF_FITS)
            said = yield from self._correctness.score(item, own, metadata.seen_by(Correctness.info))
            if said.score is None:
                return said
            cheap = _Cheap("correctness", said, confidence(said))
        sampled = is_sampled(item, parameters.sample, parameters.sample_seed)
        judged = None
        if sampled or band.asks(cheap.confidence):
            judged = yield from JUDGED[parameters.judge].score(item, parameters.judge_parameters, NO_MODEL)
        return _decided(cheap, judged, band, _parts(cheap, judged, band, fit, sampled=sampled))

    def prepare(self, entry: ReferenceEntry, parameters: AutoParameters) -> Preparation:
        """Check the question, and request what `correctness` needs."""
        failure = check_question(entry.question)
        return failure or (yield from self._correctness.prepare(entry, CorrectnessParameters(parameters.model)))


def _is_exact(item: Item) -> bool:
    """Return True if an exact match needs no second look, neither for its text nor for its values."""
    return is_literal(item.prediction, item.references) and not vetoes_text_match(item)


def is_literal(prediction: str, references: Sequence[str]) -> bool:
    """Return True if an exact match with one of the references needs no second look.

    Fits of `auto` count only such a match as exact.

    The normal form of `exact_match` drops signs, points, slashes and case, which mean something in numbers, codes and
    symbols: "-5", "3.14", "CO". The texts must be equal apart from blanks, an article, quotes and a final full stop,
    and in symbols of up to three letters also in case.
    """
    said = _bare(prediction)
    return any(
        said == wanted
        or (
            said.casefold() == wanted.casefold()
            and _SYMBOL.fullmatch(said) is None
            and _SYMBOL.fullmatch(wanted) is None
        )
        for wanted in map(_bare, references)
    )


def _bare(text: str) -> str:
    return _ARTICLE.sub("", " ".join(text.split()).strip(_AROUND))


def confidence(said: MetricResult) -> float:
    """Return the confidence of `correctness` in its verdict: the verdict's probability, but 0.5 for UNCERTAIN."""
    probability = said.score or 0.0
    denied = ResultWarning.UNCERTAIN in said.warnings
    return CONFIDENCE_OF_FITS if denied else max(probability, 1 - probability)


def _parts(cheap: _Cheap, judged: MetricResult | None, band: Band, fit: AutoFit, *, sampled: bool) -> AutoParts:
    lower, upper = band.probabilities
    parts = AutoParts(
        decided_by=cheap.by,
        reason="sample" if sampled else "certain",
        probability=cheap.result.score if isinstance(cheap.result.parts, CorrectnessParts) else None,
        band_lower=lower,
        band_upper=upper,
        sampled=sampled,
        fit=fit.identity,
    )
    if judged is not None:
        parts = replace(parts, judge_status=judged.status.name, judge_score=judged.score, judge_correct=judged.correct)
    if band.asks(cheap.confidence):
        failed = judged is None or judged.status is not Status.OK
        return replace(parts, decided_by="nobody" if failed else "judge", reason="band")
    return replace(parts, reason="refused") if band.holds(cheap.confidence) else parts


def _decided(cheap: _Cheap, judged: MetricResult | None, band: Band, parts: AutoParts) -> MetricResult:
    if parts.reason == "band" and judged is not None:
        # If the judge fails, return the judge's status. Falling back to a different verdict would hide the failure.
        return replace(judged, parts=parts)
    result = cheap.result
    # Use this metric's band for the warning, not the one-point band of `correctness`.
    others = tuple(warning for warning in result.warnings if warning != ResultWarning.UNCERTAIN)
    uncertain = (ResultWarning.UNCERTAIN,) if band.holds(cheap.confidence) else ()
    return replace(result, warnings=(*others, *uncertain), parts=parts)
