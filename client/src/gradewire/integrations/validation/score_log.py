"""The scores of finished steps, a line of JSON each, in the order in which they ended."""

import json
import logging
from collections import Counter, OrderedDict
from pathlib import Path
from typing import Any, Final

from gradewire.integrations.validation.step_scores import StepScores, StepState

_MOST_KEPT: Final = 10_000
"""Steps whose scores stay in memory, a few kilobytes each; the file has all."""

_log = logging.getLogger("gradewire.validation")


class ScoreLog:
    """Appends to a file, and keeps the newest in memory.

    Args:
        path: Of the file; read when there is one. A line that was cut off is left where it is and named in the log.

    Attributes:
        last_sequence: The largest number of a step in the file; -1 without any.
        counts: Number of steps in the file by how they ended.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._kept: OrderedDict[int, StepScores] = OrderedDict()
        self._ended: set[int] = set()
        self.last_sequence = -1
        self.counts: Counter[StepState] = Counter()
        self._ends_in_line = True
        if path.exists():
            self._read()

    def add(self, sequence: int, scores: StepScores) -> None:
        """Writes one step, whole in one call.

        Raises:
            OSError: The disk takes no more; nothing is kept then.
        """
        line = json.dumps({"sequence": sequence, **scores.to_dict()}).encode() + b"\n"
        with self._path.open("ab", buffering=0) as file:
            file.write(line if self._ends_in_line else b"\n" + line)
        self._ends_in_line = True
        self._keep(sequence, scores)

    def has(self, sequence: int) -> bool:
        """Whether the file told of this step when it was opened."""
        return sequence in self._ended

    def kept(self) -> dict[int, StepScores]:
        """The 10 000 that ended last, by their numbers."""
        return dict(self._kept)

    def _keep(self, sequence: int, scores: StepScores) -> None:
        self.counts[scores.state] += 1
        self._kept[sequence] = scores
        self._kept.move_to_end(sequence)
        self.last_sequence = max(self.last_sequence, sequence)
        if len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)

    def _read(self) -> None:
        line = b"\n"
        with self._path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                try:
                    values: dict[str, Any] = json.loads(line)
                    sequence = int(values.pop("sequence"))
                    scores = StepScores.from_dict(values)
                except (ValueError, KeyError, TypeError, AttributeError) as error:
                    _log.warning("%s, line %d cannot be read and is passed over: %s", self._path, number, error)
                    continue
                self._ended.add(sequence)
                self._keep(sequence, scores)
        self._ends_in_line = line.endswith(b"\n")
