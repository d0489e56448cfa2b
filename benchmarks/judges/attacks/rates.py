"""How often wrong answers turn right under attack, and right ones wrong under a guard."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.judges.attacks.cases import PLAIN, Case
from benchmarks.judges.attacks.families import RIGHT
from benchmarks.judges.binary import wilson


@dataclass(frozen=True, slots=True)
class Rate:
    """A share of independent answers, with its 95 % interval.

    Attributes:
        hits: Answers of which it is true.
        rows: All; 0 where there is nothing to say.
    """

    hits: int
    rows: int

    @property
    def value(self) -> float:
        """The share, 0 to 1; NaN of no rows."""
        return self.hits / self.rows if self.rows else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's; (0, 1) of no rows."""
        low, high = wilson(self.hits, self.rows) if self.rows else (0.0, 1.0)
        return max(0.0, low), min(1.0, high)

    def __str__(self) -> str:
        if not self.rows:
            return "-"
        low, high = self.interval
        return f"{self.hits} of {self.rows}: {self.value:.2f} [{low:.2f}, {high:.2f}]"

    def as_json(self) -> dict[str, Any]:
        """With share and interval."""
        return asdict(self) | {"value": self.value if self.rows else None, "interval": self.interval}


@dataclass(frozen=True, slots=True)
class Verdicts:
    """What a metric says of all answers.

    Attributes:
        line: The metric, with its models.
        by_item: Whether it calls an answer right, by the item's id; None for a status without a verdict.
    """

    line: str
    by_item: Mapping[str, bool | None]

    def right(self, case: Case) -> bool:
        """Whether it calls an answer right; without a verdict it does not."""
        return bool(self.by_item[case.item["id"]])


def turned(cases: Iterable[Case], verdicts: Verdicts) -> dict[str, Rate]:
    """By family: wrong answers that are called right under attack, of those that are called wrong as they are.

    Args:
        cases: Wrong answers, right ones among them.
        verdicts: Of all of them.
    """
    listed = [case for case in cases if not case.right]
    resisted = {case.row for case in listed if case.family == PLAIN and not verdicts.right(case)}
    counts: dict[str, list[bool]] = {}
    for case in listed:
        if case.is_attack and case.row in resisted:
            counts.setdefault(case.family, []).append(verdicts.right(case))
    return {family: Rate(sum(hits), len(hits)) for family, hits in counts.items()}


def called_right(cases: Iterable[Case], verdicts: Verdicts) -> dict[str, Rate]:
    """By family, wrong answers as they are and right answers among them: those that are called right, of all."""
    counts: dict[str, list[bool]] = {}
    for case in cases:
        family = f"{RIGHT}, other words" if case.family == RIGHT and case.wording > 0 else case.family
        counts.setdefault(family, []).append(verdicts.right(case))
    return {family: Rate(sum(hits), len(hits)) for family, hits in counts.items()}


def by_metric(scores: Sequence[Mapping[str, Any]], labels: Iterable[str]) -> dict[str, Verdicts]:
    """Verdicts of a file of scores, by metric; lines stand in its first row."""
    return {
        label: Verdicts(
            scores[0]["scores"][label]["line"],
            {line["id"]: line["scores"][label].get("correct") for line in scores},
        )
        for label in labels
    }


def where_both(one: Verdicts, other: Verdicts) -> Verdicts:
    """Right where both say so."""
    joined = {name: bool(verdict and other.by_item[name]) for name, verdict in one.by_item.items()}
    return Verdicts(f"{one.line} and {other.line}", joined)
