"""Summary of a run: means with intervals, failures by reason, where the texts came from."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from dataclasses import dataclass, field
from random import Random
from statistics import fmean, quantiles, stdev
from typing import TYPE_CHECKING, Any

from gradewire.cli.output.cascade_summary import CascadeTally, is_cascade
from gradewire.cli.output.judge_summary import JudgeTally, asks_judge
from gradewire.results import MetricScore, ScoreWarning, Status

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gradewire.cli.input.rows import Row
    from gradewire.cli.options.judge_prices import JudgePrices

RESAMPLES = 2000
# From so many rows on the bootstrap of a mean and its normal interval agree to all printed digits.
NORMAL_FROM_ROWS = 500
# Output files from before results said `correct` have these metrics, whose score is itself a verdict.
BINARY_METRICS = frozenset({"exact_match", "easy_match"})


def verdict(label: str, result: Mapping[str, Any]) -> bool | None:
    """Whether a result calls the answer right: what it says itself; in older files 0 or 1 as score says it too.

    Args:
        label: The metric's label; NAME, NAME:PRESET or a line.
        result: The result as an output row has it.
    """
    if result["score"] is None:
        return None
    if "correct" in result:
        return bool(result["correct"])
    name = result.get("line", label).partition("?")[0].partition("/")[0].partition(":")[0]
    return result["score"] >= 1.0 if name in BINARY_METRICS else None


@dataclass(slots=True)
class MetricTally:
    """One metric over the rows so far.

    Attributes:
        line: What reproduces it.
        scores: Scores of the rows that have one.
        verdicts: Number of rows by verdict, those without one left out.
        certain: The same without verdicts that are not to be trusted (UNCERTAIN).
        statuses: Number of rows by status.
        warnings: Number of rows by warning.
        examples: First message of each status, with the row's id.
        judge: What its judge did; None for a metric that asks none.
        cascade: Who decided; None for all metrics but auto.
    """

    line: str = ""
    scores: array[float] = field(default_factory=lambda: array("d"))
    verdicts: Counter[bool] = field(default_factory=Counter)
    certain: Counter[bool] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    warnings: Counter[str] = field(default_factory=Counter)
    examples: dict[str, tuple[str, str]] = field(default_factory=dict)
    judge: JudgeTally | None = None
    cascade: CascadeTally | None = None

    def add(self, label: str, result: Mapping[str, Any], *, identifier: str, row: Row | None = None) -> None:
        """Takes in one result, of the row with this id; `row` itself tells `auto` which rows are alike."""
        self.line = self.line or result.get("line", "")
        self.statuses[result["status"]] += 1
        self.warnings.update(result.get("warnings", ()))
        if self.cascade is not None:
            self.cascade.add(result, row)
        if result["score"] is None:
            self.examples.setdefault(result["status"], (identifier, result.get("message", "")))
            return
        self.scores.append(result["score"])
        judged = verdict(label, result)
        if judged is not None:
            self.verdicts[judged] += 1
            self.certain[judged] += ScoreWarning.UNCERTAIN not in result.get("warnings", ())

    @property
    def mean(self) -> float:
        """Mean over scored rows, NaN without any."""
        return fmean(self.scores) if self.scores else math.nan

    @property
    def mean_empty_as_wrong(self) -> float:
        """The same with every empty prediction counted as 0."""
        rows = len(self.scores) + self.statuses[Status.EMPTY_PREDICTION]
        return math.fsum(self.scores) / rows if rows else math.nan

    @property
    def share_right(self) -> float:
        """Share of rows called right among those with a verdict, NaN without any."""
        return _share_right(self.verdicts)

    @property
    def uncertain(self) -> int:
        """Rows whose verdict is not to be trusted."""
        return self.verdicts.total() - self.certain.total()

    @property
    def share_right_certain(self) -> float:
        """As `share_right`, of the verdicts that are to be trusted."""
        return _share_right(self.certain)

    @property
    def failures(self) -> dict[str, int]:
        """Rows without a score, by status."""
        return {status: count for status, count in sorted(self.statuses.items()) if status != Status.OK}

    def told(self, label: str, note: str = "") -> str:
        """One line for people: what reproduces the metric, a note on that, and how many rows have no score."""
        failures = ", ".join(f"{status} {count}" for status, count in self.failures.items())
        return f"{label}: {self.line}{note}{f' ({failures})' if failures else ''}"

    def interval(self) -> tuple[float, float] | None:
        """95 % bootstrap interval of the mean over rows; None for fewer than two scored rows."""
        rows = len(self.scores)
        if rows < 2:
            return None
        if rows >= NORMAL_FROM_ROWS:
            half = 1.959964 * stdev(self.scores) / math.sqrt(rows)
            return self.mean - half, self.mean + half
        random = Random(0)  # noqa: S311 - draws rows, hides nothing
        means = [math.fsum(random.choices(self.scores, k=rows)) / rows for _ in range(RESAMPLES)]
        cuts = quantiles(means, n=40, method="inclusive")
        return cuts[0], cuts[-1]


def _share_right(verdicts: Counter[bool]) -> float:
    total = verdicts.total()
    return verdicts[True] / total if total else math.nan


@dataclass(slots=True)
class Summary:
    """All metrics over the rows so far.

    Attributes:
        failed_rows: Rows with at least one result that is a failure; an empty prediction is none.
        unscored_rows: Rows that lack at least one score.
        metrics: By label.
        texts: Texts by where they were found, of the rows scored in this run; those of a judge are in its tally.
        seconds: Seconds by stage, of the same rows; shared work is counted in full for each row.
        prices: Of the judges' tokens; None where they cost nothing that is known of.
    """

    rows: int = 0
    failed_rows: int = 0
    unscored_rows: int = 0
    metrics: dict[str, MetricTally] = field(default_factory=dict)
    texts: Counter[str] = field(default_factory=Counter)
    seconds: Counter[str] = field(default_factory=Counter)
    prices: JudgePrices | None = None

    def add(
        self, output: Mapping[str, Any], scores: Mapping[str, MetricScore] | None = None, *, row: Row | None = None
    ) -> None:
        """Takes in an output row, what it cost where that is known, and the row that it is of."""
        self.rows += 1
        statuses = {result["status"] for result in output["scores"].values()}
        self.failed_rows += bool(statuses - {Status.OK, Status.EMPTY_PREDICTION})
        self.unscored_rows += bool(statuses - {Status.OK})
        for label, result in output["scores"].items():
            tally = self.metrics.get(label)
            if tally is None:
                judge = JudgeTally() if asks_judge(label) else None
                cascade = CascadeTally() if is_cascade(label) else None
                tally = self.metrics[label] = MetricTally(judge=judge, cascade=cascade)
            tally.add(label, result, identifier=output["id"], row=row)
            if tally.judge is not None:
                tally.judge.add(result, (scores or {}).get(label))
        for label, score in (scores or {}).items():
            if asks_judge(label):
                continue
            hits, timing = score.cache_hits, score.timing
            for name in ("memory", "disk", "redis", "joined", "computed"):
                self.texts[name] += getattr(hits, name)
            for name in ("queue", "cache", "tokenize", "inference"):
                self.seconds[name] += getattr(timing, f"{name}_s")
