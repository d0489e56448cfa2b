"""Two answers to one question, and what a chooser says of them."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Self

from gradewire.cli.input.pictures import with_picture_digests
from gradewire.cli.output.summary import verdict
from gradewire.results import Status

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from gradewire.cli.input.rows import Row

Winner = Literal["model_a", "model_b", "tie"]
"""As a line of a pair has it: a is the baseline's answer, b that of the side that is compared with it."""


@dataclass(frozen=True, slots=True)
class Result:
    """What one metric said of one answer.

    Attributes:
        score: None where there is none.
        correct: Whether the answer counts as right; None where the metric gives no verdict.
        status: OK, or why there is no score.
        warnings: Remarks beside a score that stands.
        message: What went wrong; "" when OK.
    """

    score: float | None
    correct: bool | None
    status: str
    warnings: tuple[str, ...] = ()
    message: str = ""

    @classmethod
    def of_output(cls, label: str, result: Mapping[str, Any]) -> Self:
        """A result as an output row has it.

        Raises:
            ValueError: It is none: its score is no finite number, or stands beside a status that has none.
        """
        score, status = result["score"], result["status"]
        numeric = isinstance(score, int | float) and not isinstance(score, bool) and math.isfinite(score)
        if not isinstance(status, str) or (status == Status.OK) != numeric or not (numeric or score is None):
            raise ValueError(f"{label} has the score {score!r:.40} and the status {status!r:.40}")
        return cls(
            score, verdict(label, result), status, tuple(result.get("warnings", ())), str(result.get("message", ""))
        )


def results_of(output: Mapping[str, Any]) -> dict[str, Result]:
    """Return the results of an output row by label; raises ValueError as `Result.of_output` does."""
    return {label: Result.of_output(label, result) for label, result in output["scores"].items()}


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer of one side.

    Attributes:
        row: Its texts (`row.item`), as far as the file has them, and where it stands.
        results: By label of the metric; empty where none was asked for.
    """

    row: Row
    results: Mapping[str, Result] = field(default_factory=dict)

    def text(self, name: str) -> str:
        """A field of the item as a text, "" where the file does not have it."""
        value = (self.row.item or {}).get(name)
        return "" if value is None else str(value)

    def texts(self, name: str) -> tuple[str, ...]:
        """A field of the item with several texts."""
        value = (self.row.item or {}).get(name)
        return tuple(map(str, value)) if isinstance(value, list | tuple) else (str(value),) if value else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerPair:
    """The answers of two sides to one question.

    Attributes:
        index: Number of the pair, from 0 over all pairs of the run.
        model_a: Name of the baseline.
        model_b: Name of the side that is compared with it.
        a: The baseline's answer, whose question and references stand for both.
        b: The other one.
    """

    index: int
    model_a: str
    model_b: str
    a: Answer
    b: Answer

    @property
    def id(self) -> str:
        """The id of the baseline's row."""
        return self.a.row.id

    def with_picture_digests(self, folder: Path | None) -> AnswerPair:
        """The same, told apart by the pictures too that its rows name from `folder`; as it is, where there is none."""
        a, b = with_picture_digests((self.a.row, self.b.row), folder)
        return replace(self, a=replace(self.a, row=a), b=replace(self.b, row=b))

    @property
    def digest(self) -> str:
        """32 hex digits over everything that a choice depends on, but for the chooser."""
        content = [self.model_a, self.model_b, *(row.digest + row.picture_digest for row in (self.a.row, self.b.row))]
        return hashlib.blake2b(json.dumps(content).encode(), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What a chooser says of a pair.

    Attributes:
        winner: None unless `status` is OK.
        status: OK, or why there is no winner: a `Status`, or INCONSISTENT where the two orders disagree.
        message: What went wrong and what to do; "" when OK.
        probability_a, probability_b, probability_tie: Means over both orders; None where nobody read any.
        orders: What was said in each order, as a line has it; empty for choosers that know none.
    """

    winner: Winner | None
    status: str = Status.OK.value
    message: str = ""
    probability_a: float | None = None
    probability_b: float | None = None
    probability_tie: float | None = None
    orders: Sequence[Mapping[str, Any]] = ()

    @property
    def may_pass(self) -> bool:
        """Whether the pair has no winner for want of a server or of time, so that --resume asks again."""
        return self.status in {Status.UNAVAILABLE, Status.TIMEOUT}

    @classmethod
    def of_line(cls, line: Mapping[str, Any]) -> Self:
        """The choice that stands in a line of a pair."""
        names = ("probability_a", "probability_b", "probability_tie")
        told = {name: line.get(name) for name in names}
        return cls(
            winner=line["winner"],
            status=line["status"],
            message=line.get("message", ""),
            orders=line.get("orders", ()),
            **told,
        )
