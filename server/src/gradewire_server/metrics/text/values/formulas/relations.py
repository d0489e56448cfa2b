"""Relations between two formulas: "x < 3", "a != b", "x = 3/2"."""

from dataclasses import dataclass
from math import isclose
from typing import Final

from gradewire_server.metrics.text.values.formulas.formula import Formula

_TURNED: Final = {">": "<", ">=": "<=", "<": ">", "<=": ">="}
_TOLERANCE: Final = 1e-9


@dataclass(frozen=True)
class Relation:
    """A relation.

    Attributes:
        left: Its left side.
        operator: "<", "<=", "=" or "!=": "x > 3" is turned round.
        right: Its right side.
    """

    left: Formula
    operator: str
    right: Formula

    @classmethod
    def of(cls, left: Formula, operator: str, right: Formula) -> "Relation":
        """A relation, turned round where the greater side stands first."""
        if operator in {">", ">="}:
            return cls(right, _TURNED[operator], left)
        return cls(left, operator, right)

    @property
    def solution(self) -> float | None:
        """The value of the only variable, where the relation says just that: "x = 3/2"."""
        if self.operator != "=" or len(self.left.steps) != 1 or len(self.left.names) != 1:
            return None
        return self.right.constant

    @property
    def names(self) -> frozenset[str]:
        """Its variables."""
        return self.left.names | self.right.names

    def says(self, reference: "Relation") -> bool:
        """Whether an answer's relation, this one, is the reference's, perhaps times a number."""
        if self.operator != reference.operator or self.names != reference.names:
            return False
        ours, theirs = self.left.minus(self.right).values, reference.left.minus(reference.right).values
        pairs = [(a, b) for a, b in zip(ours, theirs, strict=True) if a is not None and b is not None and b]
        if not pairs:
            return False
        factor = pairs[0][0] / pairs[0][1]
        if not factor or (factor < 0 and self.operator in {"<", "<="}):
            return False
        return all(isclose(a, factor * b, rel_tol=_TOLERANCE) for a, b in pairs)
