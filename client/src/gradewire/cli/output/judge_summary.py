"""What judges did over a run: rows decided, tokens read and written, probability of the labels, time."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gradewire.cli.output.figures import number
from gradewire.metric_types import METRIC_TYPES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gradewire.results import MetricScore


def asks_judge(label: str) -> bool:
    """Whether a label, or a metric line, names a metric that asks a judge."""
    name = label.partition("?")[0].partition("/")[0].partition(":")[0]
    kind = METRIC_TYPES.get(name)
    return kind is not None and kind.needs_judge


@dataclass(slots=True)
class JudgeTally:
    """One metric of a judge over the rows so far.

    Attributes:
        judged: Scored rows that the judge decided.
        ruled: Scored rows that a rule decided.
        prompt_tokens: Read for them, the fixed prompt counted for each row.
        generated_tokens: Written for them.
        masses: Probability of the labels together, where the backend tells.
        remembered: Rows of this run whose answers were all in a cache.
        timed: Rows of this run that a judge was asked for.
        inference_s: Of these, in the judge.
        queue_s: Of these, before its turn.
    """

    judged: int = 0
    ruled: int = 0
    prompt_tokens: int = 0
    generated_tokens: int = 0
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
            self.prompt_tokens += result.get("prompt_tokens", 0)
            self.generated_tokens += result.get("generated_tokens", 0)
            if (mass := result.get("label_mass")) is not None:
                self.masses.append(mass)
        if score is None:
            return
        hits = score.cache_hits
        if hits.computed or hits.joined:
            self.timed += 1
            self.inference_s += score.timing.inference_s
            self.queue_s += score.timing.queue_s
        elif hits.memory or hits.disk or hits.redis:
            self.remembered += 1

    def text(self) -> str:
        """One line for people; empty where nothing was judged."""
        if not self.judged + self.ruled:
            return ""
        said = [f"{self.judged} judged" + (f", {self.ruled} by rule" if self.ruled else "")]
        if self.judged:
            said.append(
                f"{self.prompt_tokens / self.judged:.0f} tokens read and {self.generated_tokens / self.judged:.0f} "
                "written for each"
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
        return "; ".join(said)
