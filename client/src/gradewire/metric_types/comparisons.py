"""Comparisons of two answers: what `Client.compare` takes as `by`."""

from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

from gradewire.metric_types.base import Metric

CompareMode = Literal["verdict", "reason"]
CompareDecision = Literal["both", "majority"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compare(Metric):
    """Which of two answers a judge prefers, asked with either one first.

    Attributes:
        mode: verdict (default: read from the probabilities of the labels) or reason (a reason is written first, many
            times slower).
        decision: both (default: an answer wins where both orders say so, else INCONSISTENT) or majority (a win and a
            tie are a win too).
        references: Whether the judge sees the pair's references; default False.
        caption: Whether the judge sees the pair's captions; default False.
        image: Whether the judge sees the pair's images; default False. Its judge must be one that sees.
        prompt: As in `Lave`.
        model: As in `Lave`.
    """

    name: ClassVar[Literal["compare"]] = "compare"
    needs_judge: ClassVar[bool] = True
    mode: CompareMode | None = None
    decision: CompareDecision | None = None
    references: bool | None = None
    caption: bool | None = None
    image: bool | None = None
    prompt: str | None = None
    model: str | None = None


ComparisonLike: TypeAlias = str | Compare
"""A comparison, or its line: "compare", "compare?references=true"."""
