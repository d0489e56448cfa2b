"""`auto`: exact match and `correctness` decide where they are sure, a judge where they are not."""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from hashlib import blake2b
from typing import Any, Final, Self

from typing_extensions import override

from gradewire_proto.parts import AutoParts, CorrectnessParts
from gradewire_server.domain.items import Failure, Item, MetricResult, ReferenceEntry, ResultWarning, Status, quoted
from gradewire_server.domain.metric import NO_MODEL, MetricInfo, ModelMetadata, ParameterError, Parameters
from gradewire_server.domain.needs import Preparation, Program
from gradewire_server.metrics.common import FailureError, check_question, check_readable, scoring, stop_at, take_choices
from gradewire_server.metrics.correctness.metric import Correctness, CorrectnessParameters
from gradewire_server.metrics.judged.auto_fit import EXACT, VERSION, AutoFit, Band, find_fit
from gradewire_server.metrics.judged.judge_grade import JUDGE_GRADE
from gradewire_server.metrics.judged.judge_similarity import JUDGE_SIMILARITY
from gradewire_server.metrics.judged.judge_verdict import JUDGE_VERDICT
from gradewire_server.metrics.judged.lave import LAVE
from gradewire_server.metrics.judged.metric import JudgedMetric
from gradewire_server.metrics.judged.parameters import JudgeParameters
from gradewire_server.metrics.judged.prompt import check_judged
from gradewire_server.metrics.matching.exact_match import ExactMatch
from gradewire_server.metrics.prompts import PACKAGE_PROMPTS, PromptLibrary

_RANGE: Final = 2.0**64

DEFAULT_RISK: Final = 0.05
_FIT: Final = re.compile("[0-9a-f]{8,64}")

CONFIDENCE_OF_FITS: Final = 0.5
"""Of `correctness` here: its own band is then its verdict's edge, and UNCERTAIN marks denials ("It is not Paris")."""
_EXACT_MATCH: Final = ExactMatch()


def is_sampled(item: Item, share: float, seed: int) -> bool:
    """Whether an answer is of the sample.

    Args:
        item: Its question, references, prediction and captions count; its id and group do not.
        share: Of all answers, 0 to 1.
        seed: Another number draws another sample, independent of this one.
    """
    if share <= 0:
        return False
    said = json.dumps([seed, item.question, item.references, item.prediction, item.captions], ensure_ascii=True)
    drawn = int.from_bytes(blake2b(said.encode("ascii"), digest_size=8, person=b"auto sample").digest(), "big")
    return drawn < share * _RANGE


class AutoJudge(StrEnum):
    """Which judge metric is asked."""

    LAVE = "lave"
    JUDGE_VERDICT = "judge_verdict"
    JUDGE_GRADE = "judge_grade"
    JUDGE_SIMILARITY = "judge_similarity"


JUDGED: Final[Mapping[AutoJudge, JudgedMetric[Any]]] = {
    AutoJudge(metric.info.name): metric for metric in (LAVE, JUDGE_VERDICT, JUDGE_GRADE, JUDGE_SIMILARITY)
}


@dataclass(frozen=True, slots=True)
class AutoParameters(Parameters):
    """Parameters of `auto`.

    Attributes:
        model: Plain name of the encoder of `correctness`.
        judge: Which judge metric is asked.
        judge_model: Plain name of the judge.
        risk: Bound on the share of wrong verdicts among those accepted without the judge; None where a budget says.
        judge_budget: Largest share of answers that the judge is asked about; None where the risk says.
        sample: Share of answers that the judge is asked about whoever decides.
        sample_seed: Draws the sample.
        caption: Whether the judge is shown the item's captions.
        fit: Identity of the fit, or its first 8 digits and more; None (or "") becomes that of the model's fit.
        calibration: Whose fit that was.
        prompts: Where the judge metric's prompt is looked up; no parameter.

    Raises:
        ParameterError: A choice that does not exist, a share out of range, a risk beside a budget, a fit that is not 8
            to 64 hex digits, or a judge metric that cannot show captions.
    """

    model: str = ""
    judge: AutoJudge = AutoJudge.LAVE
    judge_model: str = ""
    risk: float | None = None
    judge_budget: float | None = None
    sample: float = 0.0
    sample_seed: int = 0
    caption: bool = False
    fit: str | None = None
    calibration: str = ""
    prompts: PromptLibrary = field(default=PACKAGE_PROMPTS, kw_only=True, repr=False, compare=False)

    def __post_init__(self) -> None:
        take_choices(self)
        if self.risk is not None and self.judge_budget is not None:
            raise ParameterError("judge_budget", "stands in place of risk: leave one of them out")
        if self.judge_budget is None:
            object.__setattr__(self, "risk", DEFAULT_RISK if self.risk is None else self.risk)
        if self.risk is not None and not (math.isfinite(self.risk) and 0 < self.risk < 1):
            raise ParameterError("risk", f"must be a number above 0 and below 1, not {self.risk}")
        for name in ("judge_budget", "sample"):
            share = getattr(self, name)
            if share is not None and not 0 <= share <= 1:
                raise ParameterError(name, f"must be a number from 0 to 1, not {share}")
        object.__setattr__(self, "fit", self.fit or None)
        if self.fit and _FIT.fullmatch(self.fit) is None:
            raise ParameterError("fit", f"must be 8 to 64 hex digits in lower case, or empty, not {quoted(self.fit)}")
        self.judge_parameters  # noqa: B018 - raises where the judge metric does not take them

    @property
    def judge_parameters(self) -> JudgeParameters:
        """Those of the judge metric."""
        parameters: JudgeParameters = JUDGED[self.judge].parameters_type(
            model=self.judge_model, caption=self.caption, prompts=self.prompts
        )
        return parameters

    @property
    @override
    def prompt_name(self) -> str:
        return self.judge_parameters.prompt_name

    @property
    @override
    def prompt_digest(self) -> str:
        return self.judge_parameters.prompt_digest

    @override
    def resolved(self, metadata: ModelMetadata) -> Self:
        """With the model's fit named; ParameterError where there is none, another one, or one that cannot be used."""
        check_readable(metadata)
        found = find_fit(metadata, self)
        if isinstance(found, str):
            raise ParameterError("model", found)
        fit, described = found
        if not fit.identity.startswith(self.fit or ""):
            raise ParameterError("fit", f"the model's fit is {fit.identity} here, {self.fit} is asked for")
        if self.risk is not None and fit.least_risk > self.risk:
            raise ParameterError("risk", f"must be at least {fit.least_risk:g}, the least that was fitted for")
        return replace(self, fit=fit.identity, calibration=described)

    @override
    def asks_no_judge(self, metadata: ModelMetadata) -> bool:
        found = find_fit(metadata, self)
        return not self.sample and not isinstance(found, str) and found[0].asks_nobody(self)


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

    @scoring
    def score(self, item: Item, parameters: AutoParameters, metadata: ModelMetadata) -> Program:
        """The rounds of `correctness` unless a reference is matched, then those of the judge where it is asked."""
        stop_at(check_judged(item))
        found = find_fit(metadata, parameters)
        if isinstance(found, str):
            raise FailureError(Failure(Status.INVALID_PARAMETER, f"model: {found}"))
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
    denied = ResultWarning.UNCERTAIN in said.warnings
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
    others = tuple(warning for warning in result.warnings if warning != ResultWarning.UNCERTAIN)
    uncertain = (ResultWarning.UNCERTAIN,) if band.holds(cheap.confidence) else ()
    return replace(result, warnings=(*others, *uncertain), parts=parts)
