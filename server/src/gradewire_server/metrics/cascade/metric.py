"""`auto`: exact match and `correctness` decide where they are sure, a judge where they are not.

Sources: thresholds with a guarantee as in Angelopoulos et al. 2021, "Learn then Test"; selective prediction as in
Geifman and El-Yaniv 2017, "Selective Classification for Deep Neural Networks".
"""

from dataclasses import dataclass, replace
from typing import Final

from gradewire_server.domain.item import Item, ReferenceEntry
from gradewire_server.domain.metric import NO_MODEL, MetricInfo, ModelMetadata
from gradewire_server.domain.needs import Preparation, Program
from gradewire_server.domain.parts import AutoParts, CorrectnessParts
from gradewire_server.domain.result import Failure, MetricResult, Status, Warning  # noqa: A004 - the domain's word for it
from gradewire_server.metrics.cascade.fit import EXACT, VERSION, AutoFit, Band, find_fit
from gradewire_server.metrics.cascade.parameters import JUDGED, AutoParameters
from gradewire_server.metrics.cascade.sample import is_sampled
from gradewire_server.metrics.checks import check_question
from gradewire_server.metrics.correctness.metric import Correctness, CorrectnessParameters
from gradewire_server.metrics.judged.shown_item import check_judged
from gradewire_server.metrics.matching.exact_match import ExactMatch

CONFIDENCE_OF_FITS: Final = 0.5
"""Of `correctness` here: its own band is then its verdict's edge, and UNCERTAIN marks denials ("It is not Paris")."""
_EXACT_MATCH: Final = ExactMatch()


@dataclass(frozen=True, slots=True)
class _Cheap:
    """What the metrics say that ask no judge.

    Attributes:
        by: Name of the one that decides.
        result: Of it; OK.
        confidence: In its verdict: EXACT, or that of the probability, 0.5 to 1.
    """

    by: str
    result: MetricResult
    confidence: float


class Auto:
    """A cascade in one request: who is sure enough decides, and the result says who that was."""

    info = MetricInfo(
        name="auto",
        version=VERSION,
        description="exact_match and correctness where they are sure, by a bound on their errors that was fitted on "
        "labelled answers; a judge where they are not, unless it was no better there. Says who decided and why.",
        citation="gradewire, docs/reference/auto.md; bound: Angelopoulos et al. 2021, Learn then Test",
        needs_model=True,
        judge_parameter="judge_model",
        built_on=(Correctness.info,),
    )
    parameters_type = AutoParameters

    def __init__(self) -> None:
        self._correctness = Correctness()

    def score(self, item: Item, parameters: AutoParameters, metadata: ModelMetadata) -> Program:
        """The rounds of `correctness` unless a reference is matched, then those of the judge where it is asked."""
        failure = check_judged(item)
        if failure is not None:
            return MetricResult.failed(failure)
        found = find_fit(metadata, parameters)
        if isinstance(found, str):
            return MetricResult.failed(Failure(Status.INVALID_PARAMETER, f"model: {found}"))
        fit, band = found[0], found[0].band(parameters)
        matched = yield from _EXACT_MATCH.score(item, ExactMatch.parameters_type(), NO_MODEL)
        if matched.correct:
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
        """What `correctness` asks for; a judge reads the references with each answer."""
        failure = check_question(entry.question)
        return failure or (yield from self._correctness.prepare(entry, CorrectnessParameters(parameters.model)))


def confidence(said: MetricResult) -> float:
    """How sure `correctness` is of its verdict: its probability, 0.5 where the answer denies what it says."""
    probability = said.score or 0.0
    denied = Warning.UNCERTAIN in said.warnings
    return CONFIDENCE_OF_FITS if denied else max(probability, 1 - probability)


def _parts(cheap: _Cheap, judged: MetricResult | None, band: Band, fit: AutoFit, *, sampled: bool) -> AutoParts:
    lower, upper = band.probabilities
    told = AutoParts(
        decided_by=cheap.by,
        reason="sample" if sampled else "certain",
        probability=cheap.result.score if isinstance(cheap.result.parts, CorrectnessParts) else None,
        band_lower=lower,
        band_upper=upper,
        sampled=sampled,
        fit=fit.identity,
    )
    if judged is not None:
        told = replace(told, judge_status=judged.status.name, judge_score=judged.score, judge_correct=judged.correct)
    if band.asks(cheap.confidence):
        failed = judged is None or judged.status is not Status.OK
        return replace(told, decided_by="nobody" if failed else "judge", reason="band")
    return replace(told, reason="refused") if band.holds(cheap.confidence) else told


def _decided(cheap: _Cheap, judged: MetricResult | None, band: Band, parts: AutoParts) -> MetricResult:
    if parts.reason == "band" and judged is not None:
        # A judge that fails is no reason to take another verdict without a word: its status is the result's.
        return replace(judged, parts=parts)
    result = cheap.result
    # What correctness's own band of one point warns of is told by the reason.
    others = tuple(warning for warning in result.warnings if warning != Warning.UNCERTAIN)
    uncertain = (Warning.UNCERTAIN,) if band.holds(cheap.confidence) else ()
    return replace(result, warnings=(*others, *uncertain), parts=parts)
