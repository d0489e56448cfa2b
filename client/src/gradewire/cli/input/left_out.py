"""Rows of a file that enter no figure, counted by reason."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class LeftOut:
    """Counts of what was left out.

    Attributes:
        counts: By reason.
        first: Place of the first of each reason.
    """

    counts: Counter[str] = field(default_factory=Counter)
    first: dict[str, str] = field(default_factory=dict)

    def add(self, reason: str, place: str) -> None:
        """Counts one more."""
        self.counts[reason] += 1
        self.first.setdefault(reason, place)

    def sentences(self, what: str) -> list[str]:
        """A sentence for each reason; `what` was left out, in the plural."""
        return [
            f"{count} {what} were left out: {reason} (first at {self.first[reason]})"
            for reason, count in self.counts.items()
        ]
