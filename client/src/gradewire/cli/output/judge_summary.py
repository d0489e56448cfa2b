"""What judges did over a run: rows decided, tokens read and written, probability of the labels, time."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gradewire.metric_types import METRIC_TYPES
from gradewire.tables import number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gradewire.cli.options.judge_prices import JudgePrices
    from gradewire.results import MetricScore


def asks_judge(label: str) -> bool:
    """Whether a label, or a metric line, names a metric that asks a judge."""
    name = label.partition("?")[0].partition("/")[0].partition(":")[0]
    kind = METRIC_TYPES.get(name)
    return kind is not None and kind.needs_judge


@dataclass(slots=True)
class PaidTokens:
    """Tokens that a run used.

    Attributes:
        rows: Whose tokens are known.
        unknown_rows: Whose tokens the judge's server does not tell.
        read: By the judge.
        written: By it.
    """

    rows: int = 0
    unknown_rows: int = 0
    read: int = 0
    written: int = 0

    def add(self, result: Mapping[str, Any]) -> None:
        """Takes in one result that a judge was asked for."""
        if result.get("prompt_tokens"):
            self.rows += 1
            self.read += result["prompt_tokens"]
            self.written += result.get("generated_tokens", 0)
        else:
            self.unknown_rows += 1

    def text(self, prices: JudgePrices | None) -> str:
        """For people; empty where nothing was asked. Without `prices` no price is told: there is none."""
        if not self.rows + self.unknown_rows:
            return ""
        if not self.rows:
            return "this run used tokens that the judge's server does not count: price unknown"
        told = f"this run used {self.read} tokens read and {self.written} written"
        if prices is not None:
            told += f", {prices.text(self.read, self.written)}"
        return told + (f", and an unknown number for {self.unknown_rows} rows" if self.unknown_rows else "")


@dataclass(slots=True)
class JudgeTally:
    """One metric of a judge over the rows so far.

    Attributes:
        judged: Scored rows that the judge decided.
        ruled: Scored rows that a rule decided.
        told: Of these, rows whose tokens are known.
        prompt_tokens: Read for them, the fixed prompt counted for each row.
        generated_tokens: Written for them.
        paid: What rows of this run took that a judge was asked for and has scored.
        masses: Probability of the labels together, where the backend tells.
        remembered: Rows of this run whose answers were all in a cache.
        timed: Rows of this run that a judge was asked for.
        inference_s: Of these, in the judge.
        queue_s: Of these, before its turn.
    """

    judged: int = 0
    ruled: int = 0
    told: int = 0
    prompt_tokens: int = 0
    generated_tokens: int = 0
    paid: PaidTokens = field(default_factory=PaidTokens)
    masses: array[float] = field(default_factory=lambda: array("d"))
    remembered: int = 0
    timed: int = 0
    inference_s: float = 0.0
    queue_s: float = 0.0

    def add(self, result: Mapping[str, Any], score: MetricScore | None) -> None:
        """Takes in one result, and what it cost where it is of this run."""
        if result["score"] is not None:
            if result.get("decided_by") == "rule":
                self.ruled += 1
            else:
                self.judged += 1
                self._add_tokens(result)
            if (mass := result.get("label_mass")) is not None:
                self.masses.append(mass)
        if score is None:
            return
        hits = score.cache_hits
        if hits.computed and result["score"] is not None and result.get("decided_by") != "rule":
            self.paid.add(result)
        if hits.computed or hits.joined:
            self.timed += 1
            self.inference_s += score.timing.inference_s
            self.queue_s += score.timing.queue_s
        elif hits.memory or hits.disk or hits.redis:
            self.remembered += 1

    def _add_tokens(self, result: Mapping[str, Any]) -> None:
        # Files of before have 0 where a server did not say.
        if result.get("prompt_tokens"):
            self.told += 1
            self.prompt_tokens += result["prompt_tokens"]
            self.generated_tokens += result.get("generated_tokens", 0)

    def text(self, prices: JudgePrices | None = None) -> str:
        """One line for people; empty where nothing was judged. `prices`: see `PaidTokens.text`."""
        if not self.judged + self.ruled:
            return ""
        said = [f"{self.judged} judged" + (f", {self.ruled} by rule" if self.ruled else "")]
        if self.told:
            untold = "" if self.told == self.judged else f" of {self.told}"
            said.append(
                f"{self.prompt_tokens / self.told:.0f} tokens read and {self.generated_tokens / self.told:.0f} "
                f"written for each{untold}"
            )
        if self.masses:
            mean = sum(self.masses) / len(self.masses)
            said.append(f"mean label mass {number(mean)} (least {number(min(self.masses))})")
        if self.timed:
            said.append(
                f"{self.inference_s / self.timed:.2f} s in the judge and {self.queue_s / self.timed:.2f} s in its queue"
            )
        if self.remembered:
            said.append(f"{self.remembered} verdicts were there already")
        if paid := self.paid.text(prices):
            said.append(paid)
        return "; ".join(said)
