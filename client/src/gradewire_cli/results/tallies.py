"""A run's tallies by metric: scores, verdicts, statuses, and judges' calls and tokens."""

from __future__ import annotations

import json
import math
import shlex
from array import array
from collections import Counter
from dataclasses import asdict, dataclass, field, fields
from hashlib import blake2b
from random import Random
from statistics import fmean, quantiles, stdev
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from gradewire._common_failures import same_reason
from gradewire._judged_means import lacks_judge
from gradewire.metrics import METRIC_TYPES, Auto
from gradewire.results import ScoreWarning, Status
from gradewire_cli.results.resumable_output import verdict
from gradewire_cli.results.tables import number
from gradewire_proto.parts import JudgeParts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gradewire.results import MetricScore
    from gradewire_cli.options.judge import JudgePrices
    from gradewire_cli.rows.row import Row
    from gradewire_stats.estimated_mean import EstimatedMean

_SAMPLED_BY: Final = ("question", "references", "prediction", "captions")
RESAMPLES: Final = 2000
NORMAL_FROM_ROWS: Final = 500
"""Minimum number of rows for a normal interval. With so many rows, a bootstrap gives the same printed digits."""


def asks_judge(label: str) -> bool:
    """Return True if a label or metric identifier names a metric that needs a judge."""
    name = label.partition("?")[0].partition("/")[0].partition(":")[0]
    kind = METRIC_TYPES.get(name)
    return kind is not None and kind.needs_judge


@dataclass(slots=True)
class PaidTokens:
    """Tokens that judges read and wrote. `rows` counts rows with known tokens, and `unknown_rows` counts all others."""

    rows: int = 0
    unknown_rows: int = 0
    read: int = 0
    written: int = 0

    def __bool__(self) -> bool:
        return self.rows + self.unknown_rows > 0

    def __add__(self, other: PaidTokens) -> PaidTokens:
        return PaidTokens(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(self)))

    def add(self, result: Mapping[str, Any]) -> None:
        """Count a result that a judge decided."""
        # Old files have 0 if a server reported no tokens.
        if result.get("prompt_tokens"):
            self.rows += 1
            self.read += result["prompt_tokens"]
            self.written += result.get("generated_tokens", 0)
        else:
            self.unknown_rows += 1

    def text(self, prices: JudgePrices | None) -> str:
        """Return a sentence on the tokens, with their price if known, or "" if no judge was called."""
        if not self:
            return ""
        if not self.rows:
            return "the judge's server does not report this run's tokens, so the price is unknown"
        text = f"in this run, the judge read {self.read} tokens and wrote {self.written}"
        if prices is not None:
            text += f", {prices.text(self.read, self.written)}"
        return text + (f"; the number of tokens is unknown for {self.unknown_rows} rows" if self.unknown_rows else "")


@dataclass(slots=True)
class JudgeTally:
    """A judge's verdicts, tokens and times for one metric over the rows so far.

    Attributes:
        judged: Number of scored rows that the judge decided.
        ruled: Number of scored rows that a rule decided.
        used: Tokens of the judged rows. The fixed prompt counts for each row.
        paid: Tokens of rows for which this run called a judge and got an answer, even one that could not be used.
        masses: The total probability of each row's labels, for rows whose backend reports this probability.
        remembered: Number of this run's rows whose judge answers all came from a cache.
        timed: Number of this run's rows for which a judge was called. `inference_s` and `queue_s` are the total
            seconds in the judge and in its queue for these rows.
    """

    judged: int = 0
    ruled: int = 0
    used: PaidTokens = field(default_factory=PaidTokens)
    paid: PaidTokens = field(default_factory=PaidTokens)
    masses: array[float] = field(default_factory=lambda: array("d"))
    remembered: int = 0
    timed: int = 0
    inference_s: float = 0.0
    queue_s: float = 0.0

    def add(self, result: Mapping[str, Any], score: MetricScore | None) -> None:
        """Count a result. If `score` is not None, count its costs too."""
        if result["score"] is not None:
            if result.get("decided_by") == "rule":
                self.ruled += 1
            else:
                self.judged += 1
                self.used.add(result)
            if (mass := result.get("label_mass")) is not None:
                self.masses.append(mass)
        if score is None:
            return
        hits = score.cache_hits
        # A failed row whose judge answered has parts. Its tokens are paid for too.
        answered = result["score"] is not None or isinstance(score.parts, JudgeParts)
        if hits.computed and answered and result.get("decided_by") != "rule":
            self.paid.add(result)
        if hits.computed or hits.joined:
            self.timed += 1
            self.inference_s += score.timing.inference_s
            self.queue_s += score.timing.queue_s
        elif hits.memory or hits.disk or hits.redis:
            self.remembered += 1

    def text(self, prices: JudgePrices | None = None) -> str:
        """Return a readable line, with the cost if `prices` are given. Return "" if no judge was asked."""
        if not self.judged + self.ruled and not self.paid:
            return ""
        said = [f"{self.judged} judged" + (f", {self.ruled} by rule" if self.ruled else "")]
        if known := self.used.rows:
            read, written = self.used.read / known, self.used.written / known
            of_known = "" if known == self.judged else f" of {known}"
            said.append(f"{read:.0f} tokens read and {written:.0f} written for each{of_known}")
        if self.masses:
            mean = sum(self.masses) / len(self.masses)
            said.append(f"mean label mass {number(mean)} (least {number(min(self.masses))})")
        if self.timed:
            said.append(
                f"{self.inference_s / self.timed:.2f} s in the judge and {self.queue_s / self.timed:.2f} s in its queue"
            )
        if self.remembered:
            said.append(f"{self.remembered} verdicts from a cache")
        if paid := self.paid.text(prices):
            said.append(paid)
        return "; ".join(said)


def is_cascade(label: str) -> bool:
    """Return True if a label or metric identifier names the cascade."""
    return label.partition("?")[0].partition("/")[0] == Auto.name


class _DecidedRow(NamedTuple):
    """A row that `auto` scored. The judge's values are NaN if no judge was called."""

    score: float
    verdict: float
    judge_score: float
    judge_verdict: float
    sampled: bool
    known: bool
    content: bytes
    question: bytes


@dataclass(slots=True)
class CascadeTally:
    """Decisions of `auto` over the rows so far. `failed` is the number of judge calls without a grade."""

    decided: Counter[tuple[str, str]] = field(default_factory=Counter)
    judge_calls: int = 0
    failed: int = 0
    _rows: list[_DecidedRow] = field(default_factory=list)

    def add(self, result: Mapping[str, Any], row: Row | None = None) -> None:
        """Count a row's result. Without `row`, the row's content counts as unique."""
        if not result.get("decided_by"):
            return
        self.decided[result["decided_by"], result["reason"]] += 1
        self.judge_calls += bool(result.get("judge_status"))
        self.failed += result.get("judge_status", "") not in {"", "OK"}
        if result["score"] is None:
            return
        judged = result.get("judge_score") is not None
        item = row.item if row is not None and row.item else {}
        alone = [len(self._rows)]
        self._rows.append(
            _DecidedRow(
                result["score"],
                float(result.get("correct", False)),
                result["judge_score"] if judged else math.nan,
                float(result["judge_correct"]) if judged else math.nan,
                sampled=bool(result.get("sampled")) and judged,
                known=result["reason"] == "band" and judged,
                content=_digest([item.get(name) for name in _SAMPLED_BY] if item else alone),
                question=_digest(item["question"].strip() if item.get("question") else alone),
            )
        )

    def estimates(self) -> dict[str, EstimatedMean]:
        """Estimate what the judge's mean score and share of right answers would be if it graded all rows.

        Return {} for a small sample.

        Raises:
            ModuleNotFoundError: numpy is not installed.
        """
        from gradewire_stats.estimated_mean import LEAST_SAMPLED, estimated_mean  # noqa: PLC0415 - needs numpy

        if len({each.content for each in self._rows if each.sampled and not each.known}) < LEAST_SAMPLED:
            return {}
        scores, verdicts, judge_scores, judge_verdicts, *rest = map(list, zip(*self._rows, strict=True))
        rows: dict[str, Any] = dict(zip(("sampled", "known", "contents", "groups"), rest, strict=True))
        return {
            "mean": estimated_mean(scores, judge_scores, **rows),
            "share_right": estimated_mean(verdicts, judge_verdicts, **rows),
        }

    def document(self) -> dict[str, Any]:
        """Return the values for --summary-json."""
        decided: dict[str, dict[str, int]] = {}
        for (who, why), count in sorted(self.decided.items()):
            decided.setdefault(who, {})[why] = count
        try:
            estimates = {name: asdict(found) for name, found in self.estimates().items()}
        except ModuleNotFoundError:
            estimates = {}
        return {
            "decided": decided,
            "asked": self.judge_calls,
            "failed": self.failed,
            "judge_had_it_judged_all": estimates,
        }

    def lines(self) -> list[str]:
        """Return readable lines, or [] if nothing was decided."""
        if not self.decided:
            return []
        decided = ", ".join(f"{who} {count} ({why})" for (who, why), count in sorted(self.decided.items()))
        failed = f", {self.failed} calls failed" if self.failed else ""
        lines = [
            f"decided by {decided}; the judge was called for {self.judge_calls} of {self.decided.total()} rows{failed}"
        ]
        try:
            estimates = self.estimates()
        except ModuleNotFoundError as error:
            return [*lines, f"no estimate of the judge's mean over all rows: {error}"]
        titles = {"mean": "mean score", "share_right": "share called right"}
        lines += [
            f"the judge's {titles[name]} if it judged all rows: {number(found.value)} [{number(found.low)}, "
            f"{number(found.high)}]; for new rows like these [{number(found.population_low)}, "
            f"{number(found.population_high)}] ({found.sampled} sampled rows, {found.known} in the band)"
            for name, found in estimates.items()
        ]
        return lines


def _digest(said: object) -> bytes:
    return blake2b(json.dumps(said, ensure_ascii=True, default=repr).encode("ascii"), digest_size=16).digest()


def statuses_of(tallies: Mapping[str, MetricTally]) -> Counter[str]:
    """Return the number of results by status, over all metrics."""
    return sum((tally.statuses for tally in tallies.values()), Counter[str]())


@dataclass(slots=True)
class MetricTally:
    """One metric's tally over the rows so far.

    Attributes:
        certain: Number of rows by verdict, without rows marked UNCERTAIN.
        deciders: Number of rows by the step that decided them, of metrics that ask a judge.
        examples: First message for each status, with the row's ID.
        reasons: What the messages of each status have in common but for numbers, or "" if they differ.
    """

    line: str = ""
    scores: array[float] = field(default_factory=lambda: array("d"))
    verdicts: Counter[bool] = field(default_factory=Counter)
    certain: Counter[bool] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    warnings: Counter[str] = field(default_factory=Counter)
    deciders: Counter[str] = field(default_factory=Counter)
    examples: dict[str, tuple[str, str]] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    judge: JudgeTally | None = None
    cascade: CascadeTally | None = None

    def add(self, label: str, result: Mapping[str, Any], *, identifier: str, row: Row | None = None) -> None:
        """Count the result of the row with this ID. `auto` needs `row` to recognize equal rows."""
        self.line = self.line or result.get("line", "")
        self.statuses[result["status"]] += 1
        self.warnings.update(result.get("warnings", ()))
        if decider := result.get("decided_by"):
            self.deciders[decider] += 1
        if self.cascade is not None:
            self.cascade.add(result, row)
        if result["score"] is None:
            status, message = result["status"], result.get("message", "")
            self.examples.setdefault(status, (identifier, message))
            reason = same_reason(message.replace(row.position, "") if row is not None else message)
            if self.reasons.setdefault(status, reason) != reason:
                self.reasons[status] = ""
            return
        self.scores.append(result["score"])
        judged = verdict(label, result)
        if judged is not None:
            self.verdicts[judged] += 1
            self.certain[judged] += ScoreWarning.UNCERTAIN not in result.get("warnings", ())

    @property
    def fit_hint(self) -> str:
        """A sentence with the command that fits a threshold, or "" if this metric cannot have a fitted threshold."""
        kind = METRIC_TYPES.get(self.line.partition("?")[0].partition("/")[0].partition(":")[0])
        if kind is None or "threshold" not in {each.name for each in fields(kind)}:
            return ""
        return f"To fit a threshold, run: gradewire calibrate LABELLED_FILE --metric {shlex.quote(self.line)}"

    @property
    def rows(self) -> int:
        """Number of rows with a result."""
        return self.statuses.total()

    @property
    def common_failure(self) -> str:
        """The status of all rows if all of them failed for the same reason, otherwise ""."""
        status = next(iter(self.statuses)) if len(self.statuses) == 1 and self.rows > 1 else ""
        return status if self.reasons.get(status) else ""

    @property
    def lacks_judge(self) -> bool:
        """True if the judge graded no row, although some rows needed it.

        The scored rows are then those that need no judge. Their mean says nothing about the others.
        """
        return lacks_judge(self.deciders, self.statuses)

    @property
    def mean(self) -> float:
        """Mean score over scored rows, or NaN if no row is scored or the metric `lacks_judge`."""
        return fmean(self.scores) if self.scores and not self.lacks_judge else math.nan

    @property
    def mean_empty_as_wrong(self) -> float:
        """Mean score if every empty prediction counts as 0, or NaN if the metric `lacks_judge`.

        Without any score, the mean is NaN too, unless all predictions are empty.
        """
        rows = len(self.scores) + self.statuses[Status.EMPTY_PREDICTION]
        known = (self.scores or rows == self.rows > 0) and not self.lacks_judge
        return math.fsum(self.scores) / rows if known else math.nan

    @property
    def share_right(self) -> float:
        """Share of right verdicts, or NaN without verdicts or if the metric `lacks_judge`."""
        return math.nan if self.lacks_judge else _share_right(self.verdicts)

    @property
    def uncertain(self) -> int:
        """Number of rows with an UNCERTAIN verdict."""
        return self.verdicts.total() - self.certain.total()

    @property
    def share_right_certain(self) -> float:
        """Share of right verdicts among certain verdicts, or NaN if the metric `lacks_judge`."""
        return math.nan if self.lacks_judge else _share_right(self.certain)

    @property
    def failures(self) -> dict[str, int]:
        """Number of rows without a score, by status."""
        return {status: count for status, count in sorted(self.statuses.items()) if status != Status.OK}

    def summary(self, label: str, note: str = "") -> str:
        """Return a readable line with the metric's identifier, a note, and the number of unscored rows by status."""
        failures = ", ".join(f"{status} {count}" for status, count in self.failures.items())
        return f"{label}: {self.line}{note}{f' ({failures})' if failures else ''}"

    def interval(self) -> tuple[float, float] | None:
        """Return the 95 % interval of the mean over rows, or None with fewer than two scored rows or no mean."""
        rows = len(self.scores)
        if rows < 2 or self.lacks_judge:
            return None
        if rows >= NORMAL_FROM_ROWS:
            half = 1.959964 * stdev(self.scores) / math.sqrt(rows)
            return self.mean - half, self.mean + half
        random = Random(0)  # noqa: S311 - not for security
        means = [math.fsum(random.choices(self.scores, k=rows)) / rows for _ in range(RESAMPLES)]
        cuts = quantiles(means, n=40, method="inclusive")
        return cuts[0], cuts[-1]


def _share_right(verdicts: Counter[bool]) -> float:
    total = verdicts.total()
    return verdicts[True] / total if total else math.nan
