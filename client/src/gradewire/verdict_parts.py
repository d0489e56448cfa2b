"""What verdicts are made of: of judges, of graders and of `correctness`."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class JudgeParts:
    """What a judge said.

    Attributes:
        value: What was read from the labels, on their own scale: rating 1 to 3, grade 0 to 5, similarity 0 to 1; None
            for a verdict alone.
        labels: What the judge chose from; empty where a rule decided.
        probabilities: Of the labels, sum 1.
        yes_probability: Of the verdict yes, 0 to 1; None where no verdict was asked for.
        label_mass: Probability of all labels together before the judge was held to them, where the backend tells: near
            0, the judge wanted to say something else.
        reason: What it wrote before its verdict, where it was asked to.
        decided_by: "judge"; "rule" for a yes-no question that a rule decided; "guard" where the judge called the answer
            right, and so against another question's key.
        demonstrations: Examples that it was shown: "binary", "short", "long"; empty where there are none.
        prompt_tokens: Tokens that it read, over all rounds; most of them once for many items. None where the judge's
            server does not say.
        generated_tokens: Tokens that it wrote, over all rounds; None likewise.
        other_key_score: Score that it gave the answer against another question's key, where a guard asked; else None.
    """

    value: float | None = None
    labels: tuple[str, ...] = ()
    probabilities: tuple[float, ...] = ()
    yes_probability: float | None = None
    label_mass: float | None = None
    reason: str = ""
    decided_by: str = "judge"
    demonstrations: str = ""
    prompt_tokens: int | None = 0
    generated_tokens: int | None = 0
    other_key_score: float | None = None

    def __post_init__(self) -> None:
        if self.decided_by != "rule" and not self.prompt_tokens:
            # On the wire, where there is no None: no prompt is empty.
            object.__setattr__(self, "prompt_tokens", None)
            object.__setattr__(self, "generated_tokens", None)


@dataclass(frozen=True, slots=True)
class CorrectnessParts:
    """What a probability of `correctness` rests on; terms of SMILE as in `SmileParts`, preset one_pass.

    Attributes:
        smile: SMILE's score.
        sentence: Similarity of prediction and reference.
        keyword: Similarity of the best window and the reference's words.
        exact: Share of the reference's words found.
        best_window: The prediction's words, normalised, that came closest.
        features: By name, in alphabetical order; one that does not apply to the item is left out.
        uncertain: Whether the probability lies inside the band; None for `features_only`, as all that follows.
        band_lower: Lower end of the band in which the verdict is not trusted; both ends belong to it.
        band_upper: Upper end of the band.
        fit: Identity of the fit, 12 hex digits.
        distance: How unlike the rows of the fit the item is, 0 and more, whatever its answer is worth; None where the
            fit does not say what they were like.
        uncertain_reason: "band": the probability lies inside the band for items like the fit's. "unlike": inside the
            band that is wider because the item is not. "rule": a rule calls wrong what the rest calls
            right. "" where the verdict is not uncertain.
    """

    smile: float
    sentence: float
    keyword: float
    exact: float
    best_window: str
    features: Mapping[str, float]
    uncertain: bool | None = None
    band_lower: float | None = None
    band_upper: float | None = None
    fit: str = ""
    distance: float | None = None
    uncertain_reason: str = ""


@dataclass(frozen=True, slots=True)
class GraderParts:
    """What a grader said of the reference that gave the score.

    Attributes:
        logit: Of "right", the highest of the pieces; the score is the logistic function of it, divided by the model's
            temperature.
        pieces: Overlapping pieces in which the answer was read, 1 to 8.
        truncated: Whether a part of question, reference or answer was not read.
    """

    logit: float
    pieces: int
    truncated: bool


@dataclass(frozen=True, slots=True)
class AutoParts:
    """Who decided, and why.

    Attributes:
        decided_by: "exact_match", "correctness" or "judge"; "nobody" where the judge was asked and failed: the status
            is the judge's then, and these parts stand beside it.
        reason: "certain": outside the band. "sample": the same, and the judge is asked as well. "band": inside it, so
            the judge decides. "refused": inside it, and on the rows of the fit the judge was no better there.
        probability: That of correctness; None where exact_match decided.
        band_lower: Probabilities above it and below `band_upper` are inside the band; 0 and 1: all, both ends included.
        band_upper: See there.
        sampled: Whether the answer is of the sample that the judge is asked about whoever decides.
        judge_status: How asking the judge ended (OK, TIMEOUT, …); "" where it was not asked.
        judge_score: What it said, whether or not it decided; None where it was not asked, or failed.
        judge_correct: Likewise.
        fit: Identity of the fit, 12 hex digits.
    """

    decided_by: str
    reason: str
    probability: float | None
    band_lower: float | None
    band_upper: float | None
    sampled: bool = False
    judge_status: str = ""
    judge_score: float | None = None
    judge_correct: bool | None = None
    fit: str = ""
