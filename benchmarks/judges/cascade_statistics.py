"""Read the cascade's rows and compute statistics."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from benchmarks.common.rows import Row, read_lines

from gradewire_server.metrics.judged.auto import is_literal
from gradewire_stats.bootstrap import draws
from gradewire_stats.calibration.cascade import CascadeRows, budget_threshold, fit_cascade, fitted_risks, judged_rows
from gradewire_stats.calibration.labelled_rows import half_of
from gradewire_stats.estimated_mean import estimated_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray


EXACT, PROBABILITY = "exact_match", "correctness?confidence=0.5&grader=none"
CHEAP = (EXACT, PROBABILITY)
RESAMPLES = 2000
DELTA = 0.1


@dataclass(frozen=True)
class CheapRows:
    """Rows with results from metrics without a judge.

    Attributes:
        exact: bool[rows], True for an exact match that `auto` takes for certain.
        probability: float64[rows], P(right) from trees that were fitted without the row's question.
        denied: bool[rows], True if the answer denies.
        encoder: NAME@DIGEST with 12 digits, followed by the remaining metric identifier.
    """

    rows: list[Row]
    exact: NDArray[np.bool_]
    probability: NDArray[np.float64]
    denied: NDArray[np.bool_]
    fit: str
    encoder: str

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def halves(self) -> NDArray[np.str_]:
        """The half that contains each row's question."""
        return np.array([half_of(row["question"]) for row in self.rows])

    def with_judge(self, verdicts: Mapping[str, tuple[float, float]]) -> CascadeRows:
        """Return the rows with a judge's score and verdict by row ID; NaN if missing."""
        said = np.array([verdicts.get(row["id"], (np.nan, np.nan)) for row in self.rows])
        return CascadeRows(
            exact=self.exact,
            probability=self.probability,
            denied=self.denied,
            right=np.array([row["label"] >= 0.5 for row in self.rows]),
            judge_verdicts=said[:, 1],
            judge_scores=said[:, 0],
            questions=[row["question"] for row in self.rows],
        )

    def where(self, kept: NDArray[np.bool_]) -> CheapRows:
        """Return the rows for which `kept` is True."""
        rows = [row for row, keep in zip(self.rows, kept, strict=True) if keep]
        columns = (self.exact[kept], self.probability[kept], self.denied[kept])
        return CheapRows(rows, *columns, self.fit, self.encoder)

    def beside(self, other: CheapRows) -> CheapRows:
        """Return these rows and the other rows, which have the same fit."""
        return CheapRows(
            rows=[*self.rows, *other.rows],
            exact=np.concatenate((self.exact, other.exact)),
            probability=np.concatenate((self.probability, other.probability)),
            denied=np.concatenate((self.denied, other.denied)),
            fit=self.fit,
            encoder=self.encoder,
        )


def read_cheap(data: Path, scores: Path, held_out: Mapping[str, float] | None = None) -> CheapRows:
    """Read labelled rows and their scores from `gradewire score` for CHEAP.

    `held_out` is P(right) by row ID, from fits without the row's question; it is required if the shipped fit used these
    rows.

    Raises:
        ValueError: The files do not belong together.
    """
    rows, scored = read_lines(data), read_lines(scores)
    if [row["id"] for row in rows] != [each["id"] for each in scored]:
        raise ValueError(f"{scores} does not contain the rows of {data}. Delete it and run again")
    kept = [
        place for place, each in enumerate(scored) if all(each["scores"][name]["score"] is not None for name in CHEAP)
    ]
    rows, results = [rows[place] for place in kept], [scored[place]["scores"] for place in kept]
    probability = np.array([each[PROBABILITY]["score"] for each in results])
    if held_out is not None:
        probability = np.array([held_out[row["id"]] for row in rows])
    return CheapRows(
        rows=rows,
        exact=np.array([_is_literal(*each) for each in zip(rows, results, strict=True)]),
        probability=probability,
        denied=np.array(["UNCERTAIN" in each[PROBABILITY].get("warnings", ()) for each in results]),
        fit=results[0][PROBABILITY]["fit"],
        encoder=scored[0]["scores"][PROBABILITY]["line"],
    )


def _is_literal(row: Row, results: Mapping[str, Any]) -> bool:
    return results[EXACT]["score"] == 1 and is_literal(row["prediction"], row["references"])


def read_judge(scores: Path) -> tuple[dict[str, tuple[float, float]], str]:
    """Return score and verdict by row ID from a file with a single metric, and the metric's identifier."""
    found, line = {}, ""
    for each in read_lines(scores):
        (result,) = each["scores"].values()
        line = line or result.get("line", "")
        if result["score"] is not None:
            found[each["id"]] = (float(result["score"]), float(result["correct"]))
    return found, line


def with_drawn_judge(rows: CascadeRows, share: float) -> CascadeRows:
    """Return the rows with an imaginary judge that is right on each row with probability `share`."""
    correct = np.random.default_rng(3).random(len(rows)) < share
    said = np.where(correct, rows.right, ~rows.right).astype(np.float64)
    return replace(rows, judge_verdicts=said, judge_scores=said)


@dataclass(frozen=True)
class Graded:
    """A grading method's scores, float64[rows], verdicts, bool[rows], and calls of the judge, bool[rows]."""

    name: str
    scores: NDArray[np.float64]
    verdicts: NDArray[np.bool_]
    asked: NDArray[np.bool_]


def cheap(rows: CascadeRows) -> Graded:
    """Grade with exact match and `correctness` alone."""
    return Graded("correctness", rows.scores, rows.verdicts, np.zeros(len(rows), np.bool_))


def judge_alone(rows: CascadeRows, name: str) -> Graded:
    """Grade every row with the judge."""
    return Graded(name, rows.judge_scores, rows.judge_verdicts == 1, np.ones(len(rows), np.bool_))


def cascade(rows: CascadeRows, asked: NDArray[np.bool_], name: str) -> Graded:
    """Grade the rows in `asked` with the judge, and other rows without the judge."""
    return Graded(
        name,
        np.where(asked, rows.judge_scores, rows.scores),
        np.where(asked, rows.judge_verdicts == 1, rows.verdicts),
        asked,
    )


def crossed(rows: CascadeRows, asked: Callable[[CascadeRows, CascadeRows], NDArray[np.bool_]]) -> NDArray[np.bool_]:
    """Return bool[rows]: the rows in each half that `asked` selects with a fit on the other half."""
    place = np.zeros(len(rows), np.bool_)
    halves = np.array([half_of(question) for question in rows.questions])
    for half, other in (("a", "b"), ("b", "a")):
        place[halves == half] = asked(rows.where(halves == other), rows.where(halves == half))
    return place


def asked_by_risk(risk: float, *, refusing: bool) -> Callable[[CascadeRows, CascadeRows], NDArray[np.bool_]]:
    """Return a function that selects the rows that `auto?risk=…` sends to the judge; `refusing` rejects a bad judge."""

    def asked(fitted: CascadeRows, read: CascadeRows) -> NDArray[np.bool_]:
        fit = fit_cascade(fitted, {}, delta=DELTA, resamples=RESAMPLES)
        edge = next(each.accepts_from for each in fit.risks if each.risk == risk)
        return judged_rows(fit, read, edge) if refusing else np.asarray(read.confidence < edge)

    return asked


def asked_by_budget(budget: float) -> Callable[[CascadeRows, CascadeRows], NDArray[np.bool_]]:
    """Return a function that selects the rows that `auto?judge_budget=…` sends to the judge, even to a bad judge."""
    return lambda fitted, read: np.asarray(read.confidence < budget_threshold(fitted.confidence, budget))


def accuracy(graded: Graded, right: NDArray[np.bool_], weights: NDArray[np.float64]) -> float:
    """Return the weighted share of verdicts that match the annotators' labels."""
    return float(weights @ (graded.verdicts == right) / weights.sum())


def pearson(graded: Graded, right: NDArray[np.bool_], weights: NDArray[np.float64]) -> float:
    """Return the weighted correlation of score and label."""
    share = weights / weights.sum()
    x, y = graded.scores - share @ graded.scores, right - share @ right
    spread = math.sqrt(float(share @ (x * x)) * float(share @ (y * y)))
    return float(share @ (x * y)) / spread if spread > 0 else math.nan


def difference(
    one: Graded,
    other: Graded | None,
    rows: CascadeRows,
    statistic: Callable[[Graded, NDArray[np.bool_], NDArray[np.float64]], float],
) -> tuple[float, float, float]:
    """Return the difference between two methods, or one method's value, with a 95 % interval."""
    clusters = rows.clusters

    def value(weights: NDArray[np.float64]) -> float:
        own = statistic(one, rows.right, weights)
        return own if other is None else own - statistic(other, rows.right, weights)

    strata = np.zeros(int(clusters.max()) + 1, np.intp)
    drawn = [value(each[clusters]) for chunk in draws(strata, resamples=RESAMPLES, seed=0) for each in chunk]
    low, high = np.nanquantile(drawn, [0.025, 0.975])
    return value(np.ones(len(rows))), float(low), float(high)


@dataclass(frozen=True)
class SplitStatistics:
    """The results for a risk bound over random splits of the questions.

    Attributes:
        held: Share of splits in which wrong accepted verdicts stay within the bound.
        wrong: Mean share of wrong verdicts among accepted verdicts, over splits with accepted rows.
    """

    risk: float
    held: float
    accepted: float
    nothing: float
    wrong: float


def split_statistics(rows: CascadeRows, risks: Sequence[float], splits: int) -> list[SplitStatistics]:
    """Repeatedly fit on a random half of the questions and evaluate on the other half."""
    clusters, random = rows.clusters, np.random.default_rng(17)
    outcomes: dict[float, list[tuple[bool, float, float]]] = {risk: [] for risk in risks}
    for _ in range(splits):
        first = random.random(int(clusters.max()) + 1) < 0.5
        fitted, read = rows.where(first[clusters]), rows.where(~first[clusters])
        wrong = read.verdicts != read.right
        for found in fitted_risks(fitted, DELTA):
            if found.risk in outcomes:
                accepted = read.confidence >= found.accepts_from
                bad = int((wrong & accepted).sum())
                share = bad / accepted.sum() if accepted.any() else math.nan
                outcomes[found.risk].append((bad <= found.risk * accepted.sum(), float(accepted.mean()), share))
    return [
        SplitStatistics(
            risk=risk,
            held=float(np.mean([each[0] for each in found])),
            accepted=float(np.mean([each[1] for each in found])),
            nothing=float(np.mean([each[1] == 0 for each in found])),
            wrong=float(np.nanmean([each[2] for each in found])) if any(each[1] for each in found) else math.nan,
        )
        for risk, found in outcomes.items()
    ]


@dataclass(frozen=True)
class EstimateStatistics:
    """Statistics of estimates from many samples of the same rows.

    Attributes:
        error: Mean of (estimate - truth).
        error_of_mean: Standard error of `error`.
        plain_width: Mean width of intervals without the help of cheap scores.
    """

    share: float
    truth: float
    error: float
    error_of_mean: float
    coverage: float
    width: float
    plain_width: float
    calls: float


def estimate_statistics(
    scores: NDArray[np.float64], judged: NDArray[np.float64], known: NDArray[np.bool_], share: float, samples: int
) -> EstimateStatistics:
    """Draw samples and estimate the mean from each; `known` marks rows that the judge always rates."""
    random, truth = np.random.default_rng(23), float(judged.mean())
    values, covered, widths, plain, calls = [], 0, [], [], []
    for _ in range(samples):
        sampled = random.random(len(scores)) < share
        found = estimated_mean(scores, judged, sampled, known=known)
        values.append(found.value)
        covered += found.low <= truth <= found.high
        widths.append(found.high - found.low)
        alone = estimated_mean(np.zeros(len(scores)), judged, sampled)
        plain.append(alone.high - alone.low)
        calls.append(int((sampled | known).sum()))
    return EstimateStatistics(
        share=share,
        truth=truth,
        error=float(np.mean(values)) - truth,
        error_of_mean=float(np.std(values)) / math.sqrt(samples),
        coverage=covered / samples,
        width=float(np.mean(widths)),
        plain_width=float(np.mean(plain)),
        calls=float(np.mean(calls)),
    )
