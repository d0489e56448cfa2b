"""Define a grader's rows; split them by question, and weight them."""

import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from gradewire_stats.calibration.labelled_rows import question_key
from gradewire_train.examples import lines_digest
from gradewire_train.graded.wording import DrawnRow

MOST_REFERENCES: Final = 3
"""Default maximum number of references that a grader reads from a row."""
_WORD: Final = re.compile(r"\w+")
DRAWN: Final = "drawn"


@dataclass(frozen=True, slots=True)
class GraderRow:
    """An answer with its label.

    Attributes:
        id: The row's ID; without an ID, the file and the line.
        references: References (at least one), sorted by the share of their words that the answer contains, highest
            first.
        label: From 0 (wrong) to 1 (right); a mean over several annotators.
        source: The row's "dataset" or file, or `DRAWN` for drawn rows. Sources have equal weights.
        kind: Kind of a drawn row; "" for other rows. Kinds have equal weights.
    """

    id: str
    question: str
    references: tuple[str, ...]
    prediction: str
    label: float
    source: str
    kind: str = ""

    def json(self) -> str:
        """Return the row as a JSON line with the fields for gradewire's commands, without the kind."""
        fields = {name: getattr(self, name) for name in ("id", "question", "references", "prediction", "label")}
        return json.dumps({**fields, "dataset": self.source}, ensure_ascii=False)

    @property
    def asked(self) -> str:
        """The question or, in a row without a question, the first reference; rows that share it are in one fold."""
        return self.question or self.references[0]


def row_id(path: Path, where: str) -> str:
    """Return the ID of a row without an ID: the file's name and the line, which are the same on every machine."""
    return f"{path.name}{where.removeprefix(str(path))}"


def drawn_row(row: DrawnRow) -> GraderRow:
    """Convert a drawn row to a training row."""
    drawn = row.drawn
    references = best_references(drawn.references, drawn.prediction)
    return GraderRow(row.id, drawn.question, references, drawn.prediction, float(drawn.right), DRAWN, row.kind)


def best_references(references: Sequence[str], prediction: str, *, most: int = MOST_REFERENCES) -> tuple[str, ...]:
    """Return at most `most` references, sorted by the share of their words that the answer contains, highest first."""
    said = Counter(_WORD.findall(prediction.casefold()))

    def share(reference: str) -> float:
        words = Counter(_WORD.findall(reference.casefold()))
        return (words & said).total() / max(1, words.total())

    return tuple(sorted(references, key=share, reverse=True)[:most])


def fold_of(question: str, folds: int) -> int:
    """Return a question's fold, from 0; all rows with the same question are in the same fold."""
    digest = hashlib.blake2b(question_key(question).encode("utf-8"), digest_size=8, person=b"fold").digest()
    return int.from_bytes(digest) % folds


def at_most(rows: Sequence[GraderRow], count: int, *, seed: int) -> list[GraderRow]:
    """Return at most `count` rows of each source, in the order of `rows`; 0 means all rows.

    The rows with the smallest seeded hashes are chosen, so the choice does not depend on the order.
    """
    if not count:
        return list(rows)
    groups: dict[str, list[tuple[bytes, int]]] = defaultdict(list)
    for index, row in enumerate(rows):
        text = json.dumps([seed, row.id, row.question, row.references, row.prediction])
        groups[row.source].append((hashlib.blake2b(text.encode(), digest_size=8, person=b"source").digest(), index))
    kept = sorted(index for group in groups.values() for _, index in sorted(group)[:count])
    return [rows[index] for index in kept]


def weights(rows: Sequence[GraderRow], *, drawn_share: float) -> list[float]:
    """Return the rows' weights, with a mean of 1; drawn rows get `drawn_share` of the total.

    All kinds of drawn rows get equal parts of this share, and all other sources get equal parts of the rest. If all
    rows are drawn, or no rows are drawn, `drawn_share` has no effect.
    """
    groups = Counter((row.source, row.kind) for row in rows)
    kinds = sum(source == DRAWN for source, _ in groups)
    sources = len(groups) - kinds
    share = 1.0 if not sources else 0.0 if not kinds else drawn_share
    parts = {(source, kind): share / kinds if source == DRAWN else (1 - share) / sources for source, kind in groups}
    return [len(rows) * parts[row.source, row.kind] / groups[row.source, row.kind] for row in rows]


def rows_digest(rows: Sequence[GraderRow]) -> str:
    """Return the SHA-256 of the rows' fields, 64 hex characters."""
    return lines_digest(json.dumps(asdict(row), sort_keys=True) for row in rows)
