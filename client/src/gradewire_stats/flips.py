"""Metrics under small changes: a change at one place, which may make a right answer wrong, and harmless edits.

Each share has a 95 % interval from draws of whole questions, so an answer and its changed form are drawn together.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gradewire_stats.bootstrap import Estimate, check_lengths, question_clusters, ratio_estimates

RESAMPLES: Final = 5000
"""Default number of draws."""
_FORMS: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoForms:
    """A metric's results on two forms of each answer, before and after a change.

    Attributes:
        scores: float64[answers, 2], NaN without a score. Higher is better.
        verdicts: float64[answers, 2], 1 (right), 0 (wrong) or NaN (no verdict).
        certain: bool[answers, 2], False if the verdict is UNCERTAIN. Values without a verdict do not matter.
        questions: Key of each answer's question. Answers with the same key are drawn together. If empty, every answer
            has its own question.
    """

    scores: NDArray[np.float64]
    verdicts: NDArray[np.float64]
    certain: NDArray[np.bool_]
    questions: Sequence[str] = ()

    def __len__(self) -> int:
        """Return the number of answers."""
        return len(self.scores)

    def check(self) -> None:
        """Raise ValueError if shapes differ, or if a verdict is not 0, 1 or NaN."""
        shape = (len(self), _FORMS)
        for name in ("scores", "verdicts", "certain"):
            if (given := getattr(self, name).shape) != shape:
                raise ValueError(f"{name} have the shape {given}. Use {shape}, one column for each form")
        if self.questions:
            check_lengths(len(self), "answers", {"questions": len(self.questions)})
        if not (np.isnan(self.verdicts) | np.isin(self.verdicts, (0.0, 1.0))).all():
            raise ValueError("a verdict is not 0 or 1. Use NaN for an answer without a verdict")

    def ratios(
        self, terms: Sequence[tuple[NDArray[Any], NDArray[Any]]], *, resamples: int, seed: int
    ) -> list[Estimate]:
        """Return ratios of sums over answers. `terms` holds each ratio's numerator and denominator, float[answers]."""
        clusters = question_clusters([""] * len(self), self.questions or [""] * len(self))
        above, below = [each for each, _ in terms], [each for _, each in terms]
        return ratio_estimates(above, below, clusters, resamples=resamples, seed=seed)


@dataclass(frozen=True, slots=True, kw_only=True)
class FlipStatistics:
    """A metric on pairs of a right answer and the same answer with one place changed.

    The shares of verdicts are over all answers, with or without a verdict. A right answer gets a decided right verdict,
    a decided wrong verdict (`right_called_wrong`), an UNCERTAIN verdict (`uncertain_right`) or no verdict. The shares
    of these four outcomes add up to 1. The same is true of the wrong answers. For a metric that gives no verdict at
    all, the shares of verdicts are NaN.

    Attributes:
        pairs: Number of pairs.
        right: Number of right answers: those before the change, and those that the change keeps right.
        wrong: Number of wrong answers: those that the change makes wrong.
        without_score: Number of answers without a score.
        without_verdict: Number of answers without a verdict, including those without a score.
        decided_right: Share of all answers whose verdict is right and not UNCERTAIN.
        wrong_called_right: Share of the wrong answers that the metric calls right without UNCERTAIN.
        right_called_wrong: Share of the right answers that the metric calls wrong without UNCERTAIN.
        uncertain_right: Share of the right answers with an UNCERTAIN verdict.
        uncertain_wrong: Share of the wrong answers with an UNCERTAIN verdict.
        noticed: Share of the pairs with a wrong change in which the changed answer scores lower. A tie is not noticed.
        noticed_pairs: Number of pairs with a wrong change and two scores. `noticed` uses only these.
        kept: Share of the pairs with a harmless change in which the verdict stays, UNCERTAIN or not.
        kept_pairs: Number of pairs with a harmless change and two verdicts. `kept` uses only these.
    """

    pairs: int
    right: int
    wrong: int
    without_score: int
    without_verdict: int
    decided_right: Estimate
    wrong_called_right: Estimate
    right_called_wrong: Estimate
    uncertain_right: Estimate
    uncertain_wrong: Estimate
    noticed: Estimate
    noticed_pairs: int
    kept: Estimate
    kept_pairs: int


def flip_statistics(
    forms: TwoForms, still_right: NDArray[np.bool_], *, resamples: int = RESAMPLES, seed: int = 0
) -> FlipStatistics:
    """Measure a metric on pairs. Each pair is a right answer, and the same answer with one place changed.

    Args:
        forms: The metric's results on the answer (first column) and on the changed answer (second column).
        still_right: bool[answers], True if the changed answer is still right.
        resamples: Number of draws of whole questions.
        seed: Seed for the draws.

    Raises:
        ValueError: Columns differ in length, or a verdict is not 0, 1 or NaN.
    """
    forms.check()
    check_lengths(len(forms), "answers", {"labels": len(still_right)})
    right = np.stack([np.ones(len(forms), dtype=bool), still_right], axis=1)
    judged = ~np.isnan(forms.verdicts)
    certain = judged & forms.certain
    called_right, called_wrong = certain & (forms.verdicts == 1), certain & (forms.verdicts == 0)
    uncertain = judged & ~forms.certain
    scored = ~np.isnan(forms.scores).any(axis=1)
    lower = forms.scores[:, 1] < forms.scores[:, 0]
    two_verdicts = judged.all(axis=1)
    same = forms.verdicts[:, 0] == forms.verdicts[:, 1]

    def share(among: NDArray[np.bool_], members: NDArray[np.bool_]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        # A metric without any verdict has no share of verdicts, so no answer counts.
        counted = members & judged.any()
        return (among & counted).sum(axis=1), counted.sum(axis=1)

    found = forms.ratios(
        [
            share(np.where(right, called_right, called_wrong), np.ones_like(right)),
            share(called_right, ~right),
            share(called_wrong, right),
            share(uncertain, right),
            share(uncertain, ~right),
            (~still_right & scored & lower, ~still_right & scored),
            (still_right & two_verdicts & same, still_right & two_verdicts),
        ],
        resamples=resamples,
        seed=seed,
    )
    names = (
        "decided_right",
        "wrong_called_right",
        "right_called_wrong",
        "uncertain_right",
        "uncertain_wrong",
        "noticed",
        "kept",
    )
    return FlipStatistics(
        pairs=len(forms),
        right=int(right.sum()),
        wrong=int((~right).sum()),
        without_score=int(np.isnan(forms.scores).sum()),
        without_verdict=int((~judged).sum()),
        noticed_pairs=int((~still_right & scored).sum()),
        kept_pairs=int((still_right & two_verdicts).sum()),
        **dict(zip(names, found, strict=True)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class EditStatistics:
    """A metric on right answers before and after an edit that keeps them right, such as a change of case.

    Attributes:
        answers: Number of edited answers.
        scored: Number of answers with a score in both forms.
        judged: Number of answers with a verdict in both forms.
        verdicts_changed: Share of the judged answers whose verdict changes. UNCERTAIN verdicts count too.
        certain_changed: Of the judged answers whose verdict was not UNCERTAIN before the edit, the share that has
            another verdict or an UNCERTAIN one after the edit.
        score_change: Mean absolute difference of the scores, over the scored answers.
    """

    answers: int
    scored: int
    judged: int
    verdicts_changed: Estimate
    certain_changed: Estimate
    score_change: Estimate


def edit_statistics(forms: TwoForms, *, resamples: int = RESAMPLES, seed: int = 0) -> EditStatistics:
    """Measure how an edit that keeps answers right changes a metric's results.

    Args:
        forms: The metric's results on the answers before (first column) and after the edit (second column).
        resamples: Number of draws of whole questions.
        seed: Seed for the draws.

    Raises:
        ValueError: Columns differ in length, or a verdict is not 0, 1 or NaN.
    """
    forms.check()
    judged = ~np.isnan(forms.verdicts.sum(axis=1))
    flipped = judged & np.not_equal(forms.verdicts[:, 0], forms.verdicts[:, 1])
    certain = judged & forms.certain[:, 0]
    other_or_uncertain = certain & (flipped | ~forms.certain[:, 1])
    difference = np.abs(forms.scores[:, 1] - forms.scores[:, 0])
    scored = ~np.isnan(difference)
    verdicts_changed, certain_changed, score_change = forms.ratios(
        [
            (flipped, judged),
            (other_or_uncertain, certain),
            (np.where(scored, difference, 0.0), scored),
        ],
        resamples=resamples,
        seed=seed,
    )
    return EditStatistics(
        answers=len(forms),
        scored=int(scored.sum()),
        judged=int(judged.sum()),
        verdicts_changed=verdicts_changed,
        certain_changed=certain_changed,
        score_change=score_change,
    )
