"""Metrics that say how probable it is that an answer is right."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from gradewire.metric_types.base import Metric


@dataclass(frozen=True, slots=True, kw_only=True)
class Correctness(Metric):
    """Probability that the answer is right, 0 to 1, fitted on labelled answers; UNCERTAIN where not to be trusted.

    Attributes:
        confidence: Of verdicts without that warning, 0.5 to below 1: of right answers about the share 1 - confidence
            is called wrong without it, and of wrong ones called right, on rows like the fit's; None: 0.9.
        features_only: The features alone, for fitting; the score is SMILE's then, and there is no verdict.
        fit: Insist on a fit by 8 hex digits or more of its identity; None: the one that the model has.
        grader: A grader, NAME or NAME@DIGEST, whose logit is one feature more: better on answers like those that it
            learnt from, and dearer; None: none. The encoder has to have a fit that was made with it.
        model: Encoder, NAME or NAME@DIGEST (at least 8 hex digits), that has a fit; None: the server's default.
    """

    name: ClassVar[Literal["correctness"]] = "correctness"
    confidence: float | None = None
    features_only: bool | None = None
    fit: str | None = None
    grader: str | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Grader(Metric):
    """Probability that the answer is right, 0 to 1, by a model that reads question, reference and answer together.

    Attributes:
        model: Grader, NAME or NAME@DIGEST (at least 8 hex digits); None: the server's default one.
    """

    name: ClassVar[Literal["grader"]] = "grader"
    needs_grader: ClassVar[bool] = True
    model: str | None = None
