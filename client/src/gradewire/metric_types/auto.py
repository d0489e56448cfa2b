"""The metric that asks a judge only where cheaper ones are not sure."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from gradewire.metric_types.base import Metric

AutoJudge = Literal["lave", "judge_verdict", "judge_grade", "judge_similarity"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Auto(Metric):
    """exact_match and correctness where they are sure, a judge where they are not; says who decided and why.

    How sure they have to be was fitted on labelled answers (`gradewire calibrate --metric auto`), and the judge is not
    asked where it was no better there.

    Attributes:
        judge: Which judge metric is asked, with its default parameters: lave (default), judge_verdict, judge_grade or
            judge_similarity.
        judge_model: Judge, NAME or NAME@DIGEST (at least 8 hex digits); None: the call's `judge`, then the server's
            default.
        risk: Bound on the share of wrong verdicts among those accepted without the judge (those marked UNCERTAIN are
            not), above 0 and below 1; None: 0.05, unless there is a budget.
        judge_budget: In place of risk: the largest share of answers that the judge is asked about, 0 to 1, on answers
            like those of the fit.
        sample: Share of all answers, drawn by a hash of their content, that the judge is asked about whoever decides,
            0 to 1, for `estimated_mean`; None: 0.
        sample_seed: Another number draws another sample; None: 0.
        caption: Whether the judge sees the item's captions; default False.
        fit: Insist on a fit by 8 hex digits or more of its identity; None: the one that the model has.
        model: Encoder of correctness, NAME or NAME@DIGEST (at least 8 hex digits); None: the server's default.
    """

    name: ClassVar[Literal["auto"]] = "auto"
    judge_parameter: ClassVar[str] = "judge_model"
    judge: AutoJudge | None = None
    judge_model: str | None = None
    risk: float | None = None
    judge_budget: float | None = None
    sample: float | None = None
    sample_seed: int | None = None
    caption: bool | None = None
    fit: str | None = None
    model: str | None = None
