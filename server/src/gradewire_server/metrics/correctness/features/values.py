"""Values of an item (dates, quantities, ordinals and the like): what of them an answer has, contradicts or adds."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan
from typing import Final, Self

from gradewire_server.metrics.correctness.features.words import Said
from gradewire_server.metrics.text.values.matching import ValueMatch, ValueMatcher

_CANDIDATES: Final = 8
"""References whose values are compared."""


@dataclass(frozen=True, slots=True)
class Values:
    """How the values of an answer fit those of its references.

    Attributes:
        matches: By the position of a reference that has values.
        closest: The position whose values fit best, the first of equals; None where no reference has any.
    """

    matches: dict[int, ValueMatch]
    closest: int | None

    @classmethod
    def of(cls, question: Said, references: Sequence[Said], answer: Said) -> Self:
        """Compares the values of the first references; all texts are bounded."""
        matcher = ValueMatcher(question.raw, answer.raw)
        found = {position: matcher.match(each.raw) for position, each in enumerate(references[:_CANDIDATES])}
        matches = {position: match for position, match in found.items() if match.wanted}
        return cls(matches, max(matches, key=lambda position: _fit(matches[position]), default=None))

    @property
    def matched(self) -> int | None:
        """The position of a reference all of whose values the answer has; None where there is none."""
        found = self.closest is not None and self.matches[self.closest].found == self.matches[self.closest].wanted
        return self.closest if found else None

    def features(self) -> dict[str, float]:
        """Of the reference whose values fit best; NaN where no reference has any.

        Returns:
            `value_recall`: share of its values that the answer has. `value_conflict`: share of them in whose place it
            has another one of the same kind and unit. `values_beside`: how many values of these kinds it has besides.
        """
        if self.closest is None:
            return {"value_recall": nan, "value_conflict": nan, "values_beside": nan}
        match = self.matches[self.closest]
        return {
            "value_recall": match.found / match.wanted,
            "value_conflict": match.contradicted / match.wanted,
            "values_beside": float(match.extra),
        }


def _fit(match: ValueMatch) -> tuple[float, float]:
    return match.found / match.wanted, -match.contradicted / match.wanted
