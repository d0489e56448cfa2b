"""Parameters of `compare`; field and value names as in types.proto."""

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from typing_extensions import override

from gradewire_server.metrics.compared.decision import CompareDecision
from gradewire_server.metrics.judged.parameters import PromptParameters


class CompareMode(StrEnum):
    """Whether the judge gives a reason before its verdict."""

    VERDICT = "verdict"
    REASON = "reason"


@dataclass(frozen=True, slots=True)
class CompareParameters(PromptParameters):
    """Parameters of `compare`.

    Attributes:
        mode: Whether a reason is asked for first.
        decision: What both orders must say for an answer to win.
        references: Whether the judge is shown the references.
        image: Whether the judge is shown the images.
    """

    metric: ClassVar[str] = "compare"

    mode: CompareMode = CompareMode.VERDICT
    decision: CompareDecision = CompareDecision.BOTH
    references: bool = False
    image: bool = False

    @property
    @override
    def variant(self) -> str:
        return f"{self.mode}_with_references" if self.references else str(self.mode)
