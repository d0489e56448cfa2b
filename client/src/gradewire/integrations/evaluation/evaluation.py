"""The evaluation of one answer, as scorers of evaluation frameworks report it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self, TypeAlias

from gradewire.errors import DeadlineExceeded, TransportError
from gradewire.results import MetricScore, Provenance, ScoreWarning, Status

Label: TypeAlias = Literal["right", "wrong", "uncertain", "none"]

# What a sentence shows of a text; the metadata has all of it.
_SHOWN_CHARACTERS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """One answer's score, or why it has none.

    Attributes:
        metric: The metric as it was asked for.
        value: The score, on the metric's own scale; None unless `status` is OK. Never 0 for a failure.
        label: "right" or "wrong" where the metric's verdict stands, "uncertain" where it is not to be trusted, "none"
            where there is none: of a metric without verdicts, or of an answer that was not scored.
        correct: The verdict itself, also of an uncertain one; None where there is none.
        explanation: A sentence for people.
        status: OK, or why there is no score.
        error_type: Empty for a score; else the status, or the class of the error where the call itself failed.
        metric_line: What reproduces the score, on one line; empty where no server said it.
        digest: Of the model that gave the score, 64 hex digits; empty for metrics without one.
        metadata: What else is known, ready for JSON: model, parts, warnings, the matched reference.
    """

    metric: str
    value: float | None
    label: Label
    correct: bool | None
    explanation: str
    status: Status
    error_type: str = ""
    metric_line: str = ""
    digest: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def scored(self) -> bool:
        """Whether there is a value."""
        return self.value is not None

    @classmethod
    def of_score(cls, metric: str, score: MetricScore) -> Self:
        """The evaluation of what a server answered."""
        provenance = score.provenance
        scored = score.score is not None
        label = _label(score)
        return cls(
            metric=metric,
            value=score.score,
            label=label,
            correct=score.correct if scored else None,
            explanation=_explain(metric, score, label) if scored else _explain_failure(score.status, score.message),
            status=score.status,
            error_type="" if scored else str(score.status),
            metric_line=provenance.line if provenance else "",
            digest=_digest(provenance),
            metadata=_metadata(score),
        )

    @classmethod
    def of_error(cls, metric: str, error: TransportError) -> Self:
        """The evaluation of an answer whose call was not answered."""
        status = Status.TIMEOUT if isinstance(error, DeadlineExceeded) else Status.UNAVAILABLE
        return cls(
            metric=metric,
            value=None,
            label="none",
            correct=None,
            explanation=_explain_failure(status, str(error)),
            status=status,
            error_type=type(error).__name__,
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything but value and explanation, flat and ready for JSON: what frameworks keep beside a score.

        Keys: metric, label, correct, status, error_type, metric_line, digest, then those of `metadata`; what is empty
        is left out.
        """
        named = {
            "metric": self.metric,
            "label": self.label,
            "correct": self.correct,
            "status": str(self.status),
            "error_type": self.error_type,
            "metric_line": self.metric_line,
            "digest": self.digest,
        }
        return {name: value for name, value in {**named, **self.metadata}.items() if value is not None and value != ""}


def _label(score: MetricScore) -> Label:
    if score.score is None or score.correct is None:
        return "none"
    if ScoreWarning.UNCERTAIN in score.warnings:
        return "uncertain"
    return "right" if score.correct else "wrong"


def _explain(metric: str, score: MetricScore, label: Label) -> str:
    verdict = {"right": ", right", "wrong": ", wrong", "uncertain": ", which is uncertain", "none": ""}[label]
    said = [f"{metric} gives {score.score:.4g}{verdict}"]
    if score.matched_reference is not None:
        said.append(f"by reference {score.matched_reference + 1}")
    if window := getattr(score.parts, "best_window", ""):
        said.append(f'closest words "{_short(window)}"')
    if reason := getattr(score.parts, "reason", ""):
        said.append(f"reason: {_short(reason)}")
    return "; ".join(said) + ("" if said[-1].endswith(".") else ".")


def _explain_failure(status: Status, message: str) -> str:
    return f"Not scored ({status}): {message}" if message else f"Not scored ({status})."


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[: _SHOWN_CHARACTERS - 1]}…"


def _digest(provenance: Provenance | None) -> str:
    if provenance is None:
        return ""
    return provenance.model_digest or provenance.judge_digest or provenance.grader_digest


def _metadata(score: MetricScore) -> dict[str, Any]:
    told = score.to_dict()
    for name in ("score", "status", "correct", "line"):
        told.pop(name, None)
    if provenance := score.provenance:
        for name in ("model", "judge_model", "judge_digest", "grader_model", "grader_digest", "prompt", "calibration"):
            if value := getattr(provenance, name):
                told[name] = value
    return {name: dict(value) if isinstance(value, Mapping) else value for name, value in told.items()}
