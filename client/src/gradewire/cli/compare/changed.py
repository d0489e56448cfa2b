"""The rows whose scores changed most."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gradewire.cli.choosing.pairs import AnswerPair


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedRow:
    """A pair of answers with different scores; texts are "" where the files do not have them.

    Attributes:
        baseline_score, candidate_score: Scores by one metric.
        baseline_correct, candidate_correct: Its verdicts, None where it gives none.
    """

    id: str
    dataset: str
    question: str
    references: Sequence[str]
    baseline_answer: str
    candidate_answer: str
    baseline_score: float
    candidate_score: float
    baseline_correct: bool | None
    candidate_correct: bool | None

    @property
    def difference(self) -> float:
        """Candidate minus baseline."""
        return self.candidate_score - self.baseline_score


@dataclass(frozen=True, slots=True)
class Changed:
    """The rows that changed most by one metric, those first that changed more; equal ones in the order of the files."""

    gained: Sequence[ChangedRow]
    lost: Sequence[ChangedRow]


def most_changed(pairs: Iterable[AnswerPair], label: str, *, most: int) -> Changed:
    """The rows that gained and lost most by a metric, `most` of each."""
    rows = [(pair, _difference(pair, label)) for pair in pairs]
    gained = heapq.nlargest(most, (each for each in rows if each[1] > 0), key=lambda each: each[1])
    lost = heapq.nsmallest(most, (each for each in rows if each[1] < 0), key=lambda each: each[1])
    return Changed([_row(pair, label) for pair, _ in gained], [_row(pair, label) for pair, _ in lost])


def _difference(pair: AnswerPair, label: str) -> float:
    """Candidate minus baseline; 0 where one has no score."""
    before, after = pair.a.results[label].score, pair.b.results[label].score
    return 0.0 if before is None or after is None else after - before


def _row(pair: AnswerPair, label: str) -> ChangedRow:
    before, after = pair.a.results[label], pair.b.results[label]
    if before.score is None or after.score is None:
        raise ValueError(f"{pair.id} has no two scores")
    return ChangedRow(
        id=pair.id,
        dataset=pair.a.row.dataset,
        question=pair.a.text("question"),
        references=pair.a.texts("references"),
        baseline_answer=pair.a.text("prediction"),
        candidate_answer=pair.b.text("prediction"),
        baseline_score=before.score,
        candidate_score=after.score,
        baseline_correct=before.correct,
        candidate_correct=after.correct,
    )
