"""What a worker tells of a part, small enough to travel: counts, costs and times, never rows."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Self

from gradewire.cli.bulk.parts import PartId
from gradewire.cli.output.judge_summary import PaidTokens
from gradewire.cli.problems import InputError, UnreachableError
from gradewire.errors import TransportError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gradewire.cli.output.summary import Summary


@dataclass(frozen=True, slots=True, kw_only=True)
class PartRecord:
    """One part, as a worker left it.

    Attributes:
        file: Number of its input file.
        number: Its number there.
        rows: Its rows; 0 where it was not begun because the run is to stop.
        failed: Rows with a result that is a failure.
        unanswered: Rows that a later run scores again.
        kept: Rows whose result an earlier run had.
        error: Why it could not be scored at all; "" where it was.
        unreachable: Whether that was for want of a server, so that the same may succeed later.
        texts: Texts by where they were found.
        seconds: Seconds by stage, as `Summary.seconds`.
        paid: By metric: rows with known tokens, rows without, tokens read, tokens written.
        worker: Process that scored it, as HOST:PID.
        worker_cpu_s: CPU seconds of that process so far.
        worker_rss_bytes: Most resident memory of that process so far.
    """

    file: int
    number: int
    rows: int = 0
    failed: int = 0
    unanswered: int = 0
    kept: int = 0
    error: str = ""
    unreachable: bool = False
    texts: Mapping[str, int] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    paid: Mapping[str, list[int]] = field(default_factory=dict)
    worker: str = ""
    worker_cpu_s: float = 0.0
    worker_rss_bytes: int = 0

    @property
    def part(self) -> PartId:
        """Which part it is."""
        return PartId(self.file, self.number)

    def to_json(self) -> bytes:
        """As bytes of JSON."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_json(cls, data: bytes) -> Self:
        """Reads what `to_json` wrote, of the same version."""
        return cls(**json.loads(data))

    @classmethod
    def failure(cls, part: PartId, error: Exception) -> Self:
        """The record of a part that could not be scored."""
        transport = isinstance(error, TransportError)
        return cls(file=part.file, number=part.number, error=str(error) or type(error).__name__, unreachable=transport)

    def problem(self) -> Exception:
        """The error of the command that `error` is."""
        return (UnreachableError if self.unreachable else InputError)(self.error)


def costs_of(summary: Summary) -> dict[str, Any]:
    """Fields of a record that a summary of the part's rows gives."""
    return {
        "texts": dict(summary.texts),
        "seconds": dict(summary.seconds),
        "paid": {
            label: [paid.rows, paid.unknown_rows, paid.read, paid.written]
            for label, tally in summary.metrics.items()
            if tally.judge is not None and (paid := tally.judge.paid).rows + paid.unknown_rows
        },
    }


@dataclass(slots=True)
class RunTally:
    """Records of a run, added up.

    Attributes:
        rows: Rows that are in parts now, those of earlier runs not included.
        scored: Rows that this run scored.
        failed: Of `rows`, with a result that is a failure.
        unanswered: Of `rows`, to be scored again by a later run.
        first_problem: First part that could not be scored.
        cpu_s: CPU seconds by worker.
        rss_bytes: Most resident memory by worker.
    """

    rows: int = 0
    scored: int = 0
    failed: int = 0
    unanswered: int = 0
    first_problem: PartRecord | None = None
    cpu_s: dict[str, float] = field(default_factory=dict)
    rss_bytes: dict[str, int] = field(default_factory=dict)
    _texts: Counter[str] = field(default_factory=Counter)
    _seconds: Counter[str] = field(default_factory=Counter)
    _paid: dict[str, PaidTokens] = field(default_factory=dict)

    def add(self, record: PartRecord) -> None:
        """Takes in one record."""
        if record.error:
            self.first_problem = self.first_problem or record
            return
        self.rows += record.rows
        self.scored += record.rows - record.kept
        self.failed += record.failed
        self.unanswered += record.unanswered
        self._texts.update(record.texts)
        self._seconds.update(record.seconds)
        for label, (rows, unknown, read, written) in record.paid.items():
            paid = self._paid.setdefault(label, PaidTokens())
            paid.rows, paid.unknown_rows = paid.rows + rows, paid.unknown_rows + unknown
            paid.read, paid.written = paid.read + read, paid.written + written
        if record.worker:
            self.cpu_s[record.worker] = max(record.worker_cpu_s, self.cpu_s.get(record.worker, 0.0))
            self.rss_bytes[record.worker] = max(record.worker_rss_bytes, self.rss_bytes.get(record.worker, 0))

    def tell(self, summary: Summary) -> None:
        """Adds to a summary of all rows what this run took for its own."""
        summary.texts.update(self._texts)
        summary.seconds.update(self._seconds)
        for label, paid in self._paid.items():
            tally = summary.metrics.get(label)
            if tally is not None and tally.judge is not None:
                tally.judge.paid = paid
