"""Parameters of `auto`; field and value names as in types.proto."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final, Self

from typing_extensions import override

from gradewire_server.domain.metric import ModelMetadata, ParameterError, Parameters
from gradewire_server.domain.quoting import quoted
from gradewire_server.metrics.cascade.fit import find_fit
from gradewire_server.metrics.judged.judge_grade import JUDGE_GRADE
from gradewire_server.metrics.judged.judge_similarity import JUDGE_SIMILARITY
from gradewire_server.metrics.judged.judge_verdict import JUDGE_VERDICT
from gradewire_server.metrics.judged.lave import LAVE
from gradewire_server.metrics.judged.metric import JudgedMetric
from gradewire_server.metrics.judged.parameters import JudgeParameters
from gradewire_server.metrics.judged.prompts import PACKAGE_PROMPTS, PromptLibrary
from gradewire_server.metrics.parameters import check_readable, take_choices

DEFAULT_RISK: Final = 0.05
_FIT: Final = re.compile("[0-9a-f]{8,64}")


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
