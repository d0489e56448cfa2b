"""What `auto` did over a run: who decided, how often the judge was asked, and what the sample says of all rows."""

from __future__ import annotations

import json
import math
from array import array
from collections import Counter
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from gradewire.cli.output.figures import number
from gradewire.errors import MissingExtra
from gradewire.metric_types import Auto

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gradewire.agreement.estimated_mean import EstimatedMean
    from gradewire.cli.input.rows import Row


_DRAWN_BY: Final = ("question", "references", "prediction", "captions")
"""What `auto` draws its sample by."""


def is_cascade(label: str) -> bool:
    """Whether a label, or a metric line, names the cascade."""
    return label.partition("?")[0].partition("/")[0] == Auto.name


@dataclass(slots=True)
class CascadeTally:
    """`auto` over the rows so far.

    Attributes:
        decided: Rows by who decided and why.
        asked: Rows that the judge was asked about.
        failed: Of these, rows that it did not grade.
    """

    decided: Counter[tuple[str, str]] = field(default_factory=Counter)
    asked: int = 0
    failed: int = 0
    _scores: array[float] = field(default_factory=lambda: array("d"))
    _verdicts: array[float] = field(default_factory=lambda: array("d"))
    _judge_scores: array[float] = field(default_factory=lambda: array("d"))
    _judge_verdicts: array[float] = field(default_factory=lambda: array("d"))
    _sampled: bytearray = field(default_factory=bytearray)
    _known: bytearray = field(default_factory=bytearray)
    _contents: list[bytes] = field(default_factory=list)
    _questions: list[bytes] = field(default_factory=list)

    def add(self, result: Mapping[str, Any], row: Row | None = None) -> None:
        """Takes in one result, of this row; without one it is taken for a row like no other."""
        if not result.get("decided_by"):
            return
        self.decided[result["decided_by"], result["reason"]] += 1
        self.asked += bool(result.get("judge_status"))
        self.failed += result.get("judge_status", "") not in {"", "OK"}
        if result["score"] is None:
            return
        judged = result.get("judge_score") is not None
        self._scores.append(result["score"])
        self._verdicts.append(float(result.get("correct", False)))
        self._judge_scores.append(result["judge_score"] if judged else math.nan)
        self._judge_verdicts.append(float(result["judge_correct"]) if judged else math.nan)
        self._sampled.append(bool(result.get("sampled")) and judged)
        self._known.append(result["reason"] == "band" and judged)
        item = row.item if row is not None and row.item else {}
        alone = [len(self._scores)]
        self._contents.append(_digest([item.get(name) for name in _DRAWN_BY] if item else alone))
        self._questions.append(_digest(item["question"].strip() if item.get("question") else alone))

    def estimates(self) -> dict[str, EstimatedMean]:
        """The judge's mean score and share of right verdicts, had it judged all rows; empty without a large sample.

        Raises:
            MissingExtra: numpy is not installed.
        """
        from gradewire.agreement.estimated_mean import LEAST_SAMPLED, estimated_mean  # noqa: PLC0415 - numpy, where there is a sample

        there = zip(self._contents, self._sampled, self._known, strict=True)
        if len({content for content, sampled, known in there if sampled and not known}) < LEAST_SAMPLED:
            return {}
        columns = {"mean": (self._scores, self._judge_scores), "share_right": (self._verdicts, self._judge_verdicts)}
        return {
            name: estimated_mean(
                own,
                said,
                list(self._sampled),
                known=list(self._known),
                groups=self._questions,
                contents=self._contents,
            )
            for name, (own, said) in columns.items()
        }

    def document(self) -> dict[str, Any]:
        """For --summary-json."""
        decided: dict[str, dict[str, int]] = {}
        for (who, why), count in sorted(self.decided.items()):
            decided.setdefault(who, {})[why] = count
        try:
            estimates = {name: asdict(found) for name, found in self.estimates().items()}
        except MissingExtra:
            estimates = {}
        return {"decided": decided, "asked": self.asked, "failed": self.failed, "judge_had_it_judged_all": estimates}

    def lines(self) -> list[str]:
        """For people, a line each; none where nothing was decided."""
        if not self.decided:
            return []
        told = ", ".join(f"{who} {count} ({why})" for (who, why), count in sorted(self.decided.items()))
        failed = f", {self.failed} times without an answer" if self.failed else ""
        lines = [f"decided by {told}; the judge was asked about {self.asked} of {self.decided.total()} rows{failed}"]
        try:
            estimates = self.estimates()
        except MissingExtra as error:
            return [*lines, f"the judge's mean over all rows: {error}"]
        titles = {"mean": "mean score", "share_right": "share called right"}
        lines += [
            f"the judge's {titles[name]}, had it judged all rows: {number(found.value)} [{number(found.low)}, "
            f"{number(found.high)}]; of rows like these [{number(found.population_low)}, "
            f"{number(found.population_high)}] ({found.sampled} sampled rows, {found.known} of the band)"
            for name, found in estimates.items()
        ]
        return lines


def _digest(said: object) -> bytes:
    return blake2b(json.dumps(said, ensure_ascii=True, default=repr).encode("ascii"), digest_size=16).digest()
