"""The parameters of `auto`, and the stored format of its fits (docs/reference/auto.md explains both)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Annotated, Any, Final, Self

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, model_validator
from typing_extensions import override

from gradewire_proto.choices import AutoJudge
from gradewire_proto.wire_rules import FORMER_NAMES
from gradewire_server.domain.metric import Calibration, ModelMetadata, ParameterError, Parameters
from gradewire_server.metrics.common import check_readable, take_choices
from gradewire_server.metrics.correctness.fit import FitError, check_fit_name, check_identity, fit_id, read_form
from gradewire_server.metrics.correctness.fit_form import VersionedForm
from gradewire_server.metrics.correctness.metric import Correctness, fit_of
from gradewire_server.metrics.judged.judge_grade import JUDGE_GRADE
from gradewire_server.metrics.judged.judge_similarity import JUDGE_SIMILARITY
from gradewire_server.metrics.judged.judge_verdict import JUDGE_VERDICT
from gradewire_server.metrics.judged.lave import LAVE
from gradewire_server.metrics.judged.metric import JudgedMetric, JudgeParameters
from gradewire_server.metrics.prompts.library import PACKAGE_PROMPTS, PromptLibrary

DEFAULT_RISK: Final = 0.05
VERSION: Final = 1
EXACT: Final = 2.0
"""The confidence of an exact match."""
_LEAST_CONFIDENCE: Final = 0.5
_MAX_ENTRIES: Final = 1024
_REMEDY: Final = "fit one with `gradewire calibrate FILE --metric {line}`"
_DIGEST: Final = "^[0-9a-f]{64}$"
_DIGEST_PREFIX: Final = "^[0-9a-f]{12,64}$"

_FORMER_FIT: Final = tuple(f"{former}_fit" for former, name in FORMER_NAMES.items() if name == Correctness.info.name)
"""Former names of `correctness_fit`, used by fits that are older than the metric's present name."""

Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Confidence = Annotated[float, Field(ge=0.5, le=EXACT, allow_inf_nan=False)]


class EntryForm(BaseModel):
    """A risk or budget, and the minimum confidence for a verdict without the judge.

    If `accepts_from` is None, no verdict is accepted without the judge.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")

    share: Share
    accepts_from: Confidence | None


class AutoFitForm(VersionedForm):
    """A stored fit. Additional fields do not affect verdicts.

    Attributes:
        correctness_fit: The identity of the `correctness` fit whose probabilities this fit uses.
        judge_digest: At least the first 12 digits of the judge's digest.
        prompt_digest: At least the first 12 digits of the prompt's digest.
        delta: The probability that a risk bound does not hold.
        asked_below: The confidence below which the judge is worth its cost; None if it is never worth its cost.
    """

    model_digest: Annotated[str, Field(pattern=_DIGEST)]
    correctness_fit: Annotated[
        str, Field(pattern="^[0-9a-f]{12}$", validation_alias=AliasChoices("correctness_fit", *_FORMER_FIT))
    ]
    judge: str
    judge_digest: Annotated[str, Field(pattern=_DIGEST_PREFIX)]
    prompt_digest: Annotated[str, Field(pattern=_DIGEST_PREFIX)]
    delta: Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)]
    risks: Annotated[list[EntryForm], Field(min_length=1, max_length=_MAX_ENTRIES)]
    budgets: Annotated[list[EntryForm], Field(min_length=1, max_length=_MAX_ENTRIES)]
    asked_below: Annotated[float, Field(ge=0.5, allow_inf_nan=False)] | None

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        for entries in (self.risks, self.budgets):
            shares = [entry.share for entry in entries]
            if sorted(set(shares)) != shares:
                raise ValueError("risks and budgets must be in ascending order")
        edges = [_edge(entry) for entry in self.risks]
        if edges != sorted(edges, reverse=True):
            raise ValueError("a larger risk must not have a higher accepts_from")
        edges = [_edge(entry) for entry in self.budgets]
        if edges != sorted(edges):
            raise ValueError("a larger budget must not have a lower accepts_from")
        if self.budgets[0].share > 0:
            raise ValueError("the first budget must be 0")
        return self


def _edge(entry: EntryForm) -> float:
    return math.inf if entry.accepts_from is None else entry.accepts_from


JUDGED: Final[Mapping[AutoJudge, JudgedMetric[Any]]] = {
    AutoJudge(metric.info.name): metric for metric in (LAVE, JUDGE_VERDICT, JUDGE_GRADE, JUDGE_SIMILARITY)
}


@dataclass(frozen=True, slots=True)
class AutoParameters(Parameters):
    """The parameters of `auto` (see types.proto); `calibration` names the source of `fit`.

    `prompts` is not a parameter, but the library that contains the judge metric's prompt.

    Raises:
        ParameterError: A choice is unknown, a share is out of range, both `risk` and `judge_budget` are set, `fit`
            is not 8 to 64 hex digits, or the judge metric's prompt has no field for captions.
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
            raise ParameterError("judge_budget", "cannot be combined with risk. Omit risk or judge_budget")
        if self.judge_budget is None:
            object.__setattr__(self, "risk", DEFAULT_RISK if self.risk is None else self.risk)
        if self.risk is not None and not (math.isfinite(self.risk) and 0 < self.risk < 1):
            raise ParameterError("risk", f"must be a number above 0 and below 1, not {self.risk}")
        for name in ("judge_budget", "sample"):
            share = getattr(self, name)
            if share is not None and not 0 <= share <= 1:
                raise ParameterError(name, f"must be a number from 0 to 1, not {share}")
        check_fit_name(self.fit)
        self.judge_parameters  # noqa: B018 - raises if the judge metric rejects its parameters

    @property
    def judge_parameters(self) -> JudgeParameters:
        """The parameters of the judge metric."""
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
        """Return the parameters with the model's fit.

        Raises:
            ParameterError: The fit is missing or unusable, is not the requested fit, or has only risks above `risk`.
        """
        check_readable(metadata)
        found = find_fit(metadata, self)
        if isinstance(found, str):
            raise ParameterError("model", found)
        fit, described = found
        check_identity(fit.identity, self.fit)
        least = fit.form.risks[0].share
        if self.risk is not None and least > self.risk:
            raise ParameterError("risk", f"must be at least {least:g}, the smallest fitted risk")
        return replace(self, fit=fit.identity, calibration=described)

    @override
    def asks_no_judge(self, metadata: ModelMetadata) -> bool:
        found = find_fit(metadata, self)
        return not self.sample and not isinstance(found, str) and found[0].asks_nobody(self)


@dataclass(frozen=True, slots=True)
class Band:
    """Two limits for the confidence in a verdict without the judge.

    A verdict is accepted if its confidence is at least `accepts_from`; infinity means that no verdict is accepted.
    Below `asked_below`, the judge gives the verdict. Between the two limits, the verdict is uncertain.
    """

    accepts_from: float
    asked_below: float

    def holds(self, confidence: float) -> bool:
        """Return True if this confidence is too low to accept a verdict without the judge."""
        return confidence < self.accepts_from

    def asks(self, confidence: float) -> bool:
        """Return True if a confidence this low leaves the verdict to the judge."""
        return confidence < min(self.accepts_from, self.asked_below)

    @property
    def probabilities(self) -> tuple[float, float]:
        """The probabilities at the band's ends; 0 and 1 if no verdict of `correctness` is accepted."""
        upper = min(self.accepts_from, 1.0)
        return (0.0, 1.0) if self.accepts_from > 1 else (1 - upper, upper)


@dataclass(frozen=True, slots=True)
class AutoFit:
    """A parsed fit; `identity` is the `fit_id` of the stored text."""

    identity: str
    form: AutoFitForm

    def band(self, asked: AutoParameters) -> Band:
        """Return the band for the largest fitted risk or budget up to the requested value."""
        entries, share = self.form.risks, asked.risk
        if share is None:
            entries, share = self.form.budgets, asked.judge_budget or 0.0
        at_most = [entry for entry in entries if entry.share <= share]
        # Below the smallest fitted risk, accept nothing.
        accepts_from = _edge(at_most[-1]) if at_most else math.inf
        return Band(accepts_from, 0.0 if self.form.asked_below is None else self.form.asked_below)

    def asks_nobody(self, asked: AutoParameters) -> bool:
        """Return True if the judge is never asked, at any confidence."""
        return not self.band(asked).asks(_LEAST_CONFIDENCE)


@lru_cache(maxsize=32)
def read_auto_fit(text: str) -> AutoFit | str:
    """Return the cached fit, or the reason why the fit cannot be used."""
    try:
        form = read_form(text, AutoFitForm, version=VERSION)
    except FitError as error:
        return str(error)
    return AutoFit(fit_id(text), form)


def find_fit(metadata: ModelMetadata, asked: AutoParameters) -> tuple[AutoFit, str] | str:
    """Return the fit for a judge metric and a judge, and the fit's source. If no fit can be used, return a message.

    If `metadata` names no judge, use a fit for any judge.
    """
    how = _REMEDY.format(line="auto" if asked.judge == "lave" else f"'auto?judge={asked.judge}'")
    judge, _, digest = metadata.judge.partition("@")
    known = [each for each in metadata.calibrations if each.metric == "auto" and each.fit]
    found = [each for each in known if _is_for(each, asked) and (not judge or digest.startswith(_judge_of(each)))]
    if not found:
        return (
            f"this encoder has no fit for auto with {asked.judge} and the judge {judge or 'requested'}. A fit on "
            f"labelled answers determines when a judge is needed; {how}"
        )
    fit = read_auto_fit(found[0].fit)
    if isinstance(fit, str):
        return f"this encoder's fit for auto cannot be used ({fit}): {how} again"
    if why := _mismatch(fit.form, metadata, asked):
        return f"this encoder's fit for auto was made for {why}: {how} again"
    return fit, found[0].described


def _is_for(calibration: Calibration, asked: AutoParameters) -> bool:
    # `find_fit` compares the judge's digest, since the judge's name in the parameters may lack a digest.
    said = dict(calibration.parameters)
    return said.get("judge") == asked.judge and said.get("caption", "false") == str(asked.caption).lower()


def _judge_of(calibration: Calibration) -> str:
    fit = read_auto_fit(calibration.fit)
    return "" if isinstance(fit, str) else fit.form.judge_digest


def _mismatch(form: AutoFitForm, metadata: ModelMetadata, asked: AutoParameters) -> str:
    if metadata.digest and form.model_digest != metadata.digest:
        return f"an encoder with the digest {form.model_digest[:12]}, but this encoder has {metadata.digest[:12]}"
    if not asked.prompt_digest.startswith(form.prompt_digest):
        return f"the prompt {form.prompt_digest[:12]}, but {asked.judge} has {asked.prompt_digest[:12]}"
    correctness = fit_of(metadata.seen_by(Correctness.info))
    if isinstance(correctness, str):
        return f"a correctness fit that the encoder no longer has ({correctness})"
    if correctness.identity != form.correctness_fit:
        return f"the correctness fit {form.correctness_fit}, but the model has {correctness.identity}"
    return ""
