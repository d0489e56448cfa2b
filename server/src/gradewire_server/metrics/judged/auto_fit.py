"""A fit of `auto`: how sure exact match and `correctness` have to be, and where the judge is worth asking.

The form in which fits are stored, and what they promise: docs/reference/auto.md.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Final, Literal, Protocol, Self

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError, model_validator

from gradewire_proto.wire_rules import FORMER_NAMES
from gradewire_server.domain.metric import Calibration, ModelMetadata
from gradewire_server.metrics.correctness.fitted import MAX_TEXT_CHARACTERS, fit_id
from gradewire_server.metrics.correctness.metric import Correctness, fit_of

VERSION: Final = 1
EXACT: Final = 2.0
"""Confidence of an exact match: above that of every probability."""
_LEAST_CONFIDENCE: Final = 0.5
_MAX_ENTRIES: Final = 1024
_REMEDY: Final = "fit one with `gradewire calibrate FILE --metric {line}`"
_DIGEST: Final = "^[0-9a-f]{64}$"
_BEGINNING: Final = "^[0-9a-f]{12,64}$"
"""Of a digest: as many digits as a metric line has of it, or more."""

_FORMER_FIT: Final = tuple(f"{former}_fit" for former, name in FORMER_NAMES.items() if name == Correctness.info.name)
"""What fits called `correctness_fit` that were made when the metric had another name."""

Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Confidence = Annotated[float, Field(ge=0.5, le=EXACT, allow_inf_nan=False)]


class _Form(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")


class EntryForm(_Form):
    """From which confidence on a verdict is accepted without the judge.

    Attributes:
        share: The risk, or the budget.
        accepts_from: Least confidence; None: none is accepted.
    """

    share: Share
    accepts_from: Confidence | None


class AutoFitForm(_Form):
    """A whole fit; what else stands in it is its provenance and its figures, which no verdict is made of.

    Attributes:
        correctness_fit: Identity of the fit of `correctness` whose probabilities it was made on.
        judge: Name of the judge metric.
        judge_digest: Of the judge, its first 12 digits or more.
        prompt_digest: Of the prompt that the judge was shown, likewise.
        delta: The bounds of the risks hold with the probability 1 - delta each.
        risks: Ascending.
        budgets: Ascending.
        asked_below: Confidence below which the judge is worth asking; None: nowhere.
    """

    format: Literal[1]
    metric_version: int
    model_digest: Annotated[str, Field(pattern=_DIGEST)]
    correctness_fit: Annotated[
        str, Field(pattern="^[0-9a-f]{12}$", validation_alias=AliasChoices("correctness_fit", *_FORMER_FIT))
    ]
    judge: str
    judge_digest: Annotated[str, Field(pattern=_BEGINNING)]
    prompt_digest: Annotated[str, Field(pattern=_BEGINNING)]
    delta: Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)]
    risks: Annotated[list[EntryForm], Field(min_length=1, max_length=_MAX_ENTRIES)]
    budgets: Annotated[list[EntryForm], Field(min_length=1, max_length=_MAX_ENTRIES)]
    asked_below: Annotated[float, Field(ge=0.5, allow_inf_nan=False)] | None

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        for entries in (self.risks, self.budgets):
            shares = [entry.share for entry in entries]
            if sorted(set(shares)) != shares:
                raise ValueError("risks and budgets must ascend")
        edges = [_edge(entry) for entry in self.risks]
        if edges != sorted(edges, reverse=True):
            raise ValueError("a larger risk must not accept less")
        edges = [_edge(entry) for entry in self.budgets]
        if edges != sorted(edges):
            raise ValueError("a larger budget must not accept more")
        if self.budgets[0].share > 0:
            raise ValueError("budgets must begin at 0")
        return self


def _edge(entry: EntryForm) -> float:
    return math.inf if entry.accepts_from is None else entry.accepts_from


class AutoRequest(Protocol):
    """Of `AutoParameters`, what decides where a fit is used."""

    @property
    def risk(self) -> float | None:
        """See there."""

    @property
    def judge_budget(self) -> float | None:
        """See there."""

    @property
    def judge(self) -> str:
        """See there."""

    @property
    def caption(self) -> bool:
        """See there."""

    @property
    def prompt_digest(self) -> str:
        """See there."""


@dataclass(frozen=True, slots=True)
class Band:
    """Where cheap metrics decide, and where the judge does.

    Attributes:
        accepts_from: Least confidence of a verdict that is accepted without the judge; infinite: none is.
        asked_below: Confidence below which the judge decides what is not accepted; elsewhere it is refused.
    """

    accepts_from: float
    asked_below: float

    def holds(self, confidence: float) -> bool:
        """Whether a verdict of that confidence is inside: nobody cheap is sure of it."""
        return confidence < self.accepts_from

    def asks(self, confidence: float) -> bool:
        """Whether the judge decides."""
        return confidence < min(self.accepts_from, self.asked_below)

    @property
    def probabilities(self) -> tuple[float, float]:
        """Probabilities between which the band lies; 0 and 1 where `correctness` never decides."""
        upper = min(self.accepts_from, 1.0)
        return (0.0, 1.0) if self.accepts_from > 1 else (1 - upper, upper)


@dataclass(frozen=True, slots=True)
class AutoFit:
    """A fit that was read.

    Attributes:
        identity: What `fit_id` makes of the stored text.
        form: As stored.
    """

    identity: str
    form: AutoFitForm

    @property
    def least_risk(self) -> float:
        """The least risk that something was fitted for."""
        return self.form.risks[0].share

    def band(self, asked: AutoRequest) -> Band:
        """The band of the largest fitted risk, or budget, that is not above the one asked for."""
        entries, share = self.form.risks, asked.risk
        if share is None:
            entries, share = self.form.budgets, asked.judge_budget or 0.0
        at_most = [entry for entry in entries if entry.share <= share]
        # Below the least of all nothing is accepted; parameters refuse such a risk before.
        accepts_from = _edge(at_most[-1]) if at_most else math.inf
        return Band(accepts_from, 0.0 if self.form.asked_below is None else self.form.asked_below)

    def asks_nobody(self, asked: AutoRequest) -> bool:
        """Whether the judge decides nothing: it is refused everywhere, or every verdict is accepted."""
        return not self.band(asked).asks(_LEAST_CONFIDENCE)


@lru_cache(maxsize=32)
def read_auto_fit(text: str) -> AutoFit | str:
    """A stored fit, checked; or, as a text, why it cannot be used. Once per text and process."""
    if len(text) > MAX_TEXT_CHARACTERS:
        return f"has {len(text)} characters, at most {MAX_TEXT_CHARACTERS} are read"
    try:
        form = AutoFitForm.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"]))
        return f"{where or 'text'}: {first['msg']}"
    if form.metric_version != VERSION:
        return f"is for version {form.metric_version} of the metric, this server has {VERSION}"
    return AutoFit(fit_id(text), form)


def find_fit(metadata: ModelMetadata, asked: AutoRequest) -> tuple[AutoFit, str] | str:
    """The model's fit for a judge metric and judge, and whose it is; or why there is none that can be used.

    Args:
        metadata: Of the encoder, with what was fitted for `correctness` and `auto`, and the judge; without one, a fit
            for any judge is taken.
        asked: What is asked for.
    """
    how = _REMEDY.format(line="auto" if asked.judge == "lave" else f"'auto?judge={asked.judge}'")
    judge, _, digest = metadata.judge.partition("@")
    known = [each for each in metadata.calibrations if each.metric == "auto" and each.fit]
    found = [each for each in known if _is_for(each, asked) and (not judge or digest.startswith(_judge_of(each)))]
    if not found:
        return (
            f"this encoder has no fit for auto with {asked.judge} and the judge {judge or 'asked for'}: labelled "
            f"answers say when a judge is asked; {how}"
        )
    fit = read_auto_fit(found[0].fit)
    if isinstance(fit, str):
        return f"this encoder's fit for auto cannot be used ({fit}): {how} again"
    if why := _mismatch(fit.form, metadata, asked):
        return f"this encoder's fit for auto was made for {why}: {how} again"
    return fit, found[0].described


def _is_for(calibration: Calibration, asked: AutoRequest) -> bool:
    # Which judge is told by its digest: here its name may stand with one and without.
    said = dict(calibration.parameters)
    return said.get("judge") == asked.judge and said.get("caption", "false") == str(asked.caption).lower()


def _judge_of(calibration: Calibration) -> str:
    fit = read_auto_fit(calibration.fit)
    return "" if isinstance(fit, str) else fit.form.judge_digest


def _mismatch(form: AutoFitForm, metadata: ModelMetadata, asked: AutoRequest) -> str:
    if metadata.digest and form.model_digest != metadata.digest:
        return f"the encoder's digest {form.model_digest[:12]}, and it has {metadata.digest[:12]}"
    if not asked.prompt_digest.startswith(form.prompt_digest):
        return f"the prompt {form.prompt_digest[:12]}, and {asked.judge} has {asked.prompt_digest[:12]}"
    correctness = fit_of(metadata.seen_by(Correctness.info))
    if isinstance(correctness, str):
        return f"probabilities that it no longer has ({correctness})"
    if correctness.identity != form.correctness_fit:
        return f"the fit {form.correctness_fit} of correctness, and the model has {correctness.identity}"
    return ""
