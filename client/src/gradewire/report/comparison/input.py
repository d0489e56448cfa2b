"""What the page of a comparison is made from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradewire.report.tables import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeCounts:
    """Whose answer one chooser prefers how often; `undecided` pairs have neither a winner nor a tie."""

    chooser: str
    wins: int
    ties: int
    losses: int
    undecided: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedAnswer:
    """Two answers to a question, with their scores and verdicts by one metric.

    Attributes:
        baseline: The baseline's answer, as it came.
        candidate: The candidate's.
        baseline_verdict: "right", "wrong", or "" where the metric gives no verdict.
        candidate_verdict: As above.
    """

    id: str
    question: str
    references: Sequence[str]
    baseline: str
    candidate: str
    baseline_score: float
    candidate_score: float
    baseline_verdict: str
    candidate_verdict: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateSection:
    """A candidate beside the baseline.

    Attributes:
        pairs: Pairs of answers.
        tables: Figures over all pairs and by group.
        outcomes: A bar each.
        changed_by: Metric by which `gained` and `lost` are those that changed most; "" without one.
        gained: The rows that gained most, the first gained more.
        lost: The rows that lost most.
        differences: What differs beside the answers; None where nothing does.
    """

    candidate: str
    pairs: int
    tables: Sequence[Table]
    outcomes: Sequence[OutcomeCounts]
    changed_by: str
    gained: Sequence[ChangedAnswer]
    lost: Sequence[ChangedAnswer]
    differences: Table | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonInput:
    """A comparison.

    Attributes:
        source: What was compared, as the headline says it.
        created: Date for the headline; the page reads no clock.
        baseline: Name of the side that the others are compared with.
        chooser: What reproduces the choices.
        candidates: One or more.
        notes: Sentences.
        conditions: What was asked of the figures, in sentences, and whether that fails.
        lines: What reproduces each metric.
    """

    source: str
    created: str
    baseline: str
    chooser: str
    candidates: Sequence[CandidateSection]
    notes: Sequence[str]
    conditions: Sequence[tuple[str, bool]]
    lines: Sequence[tuple[str, str]]
