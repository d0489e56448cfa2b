"""The result of a whole call."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from math import isfinite
from typing import TYPE_CHECKING, Any, overload

from gradewire.errors import MissingExtra
from gradewire.results import PART_FIELDS, CacheHits, ItemScores, Provenance, ScoreWarning, Status, Timing

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_PARTS = tuple(name for name in PART_FIELDS if name != "correct")
_HITS = tuple(field.name for field in fields(CacheHits))
_ALWAYS = ("index", "id", "metric", "score", "status")
_TIMES = tuple(field.name for field in fields(Timing))


@dataclass(frozen=True, slots=True)
class MetricSummary:
    """One metric over all items of a call.

    Attributes:
        mean: Over scored items; None when there is none.
        mean_empty_as_wrong: The same with every empty prediction counted as 0; None when there is neither.
        share_right: Share of scored items that the metric calls correct, of those with a verdict; None without any.
        scored: Number of items with a score.
        uncertain: Number of scored items whose verdict is not to be trusted (UNCERTAIN).
        share_right_certain: As `share_right`, of the others; None without any.
        counts: Number of items by status.
    """

    mean: float | None
    mean_empty_as_wrong: float | None
    share_right: float | None
    scored: int
    counts: Mapping[Status, int]
    uncertain: int = 0
    share_right_certain: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class ScoreReport(Sequence[ItemScores]):
    """Results in the order of the items; a sequence of `ItemScores`.

    Attributes:
        items: The results.
        labels: What the metrics' results are called, in the order of the call.
        provenance: What reproduces the scores, by label; a label is missing when no item reached a server.
    """

    items: tuple[ItemScores, ...]
    labels: tuple[str, ...]
    provenance: Mapping[str, Provenance]

    @overload
    def __getitem__(self, index: int) -> ItemScores: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[ItemScores, ...]: ...
    def __getitem__(self, index: int | slice) -> ItemScores | tuple[ItemScores, ...]:
        return self.items[index]

    def __len__(self) -> int:
        return len(self.items)

    def __repr__(self) -> str:
        means = ", ".join(
            f"{label} {'none' if summary.mean is None else f'{summary.mean:.4f}'} ({summary.scored} scored)"
            for label, summary in self.summary().items()
        )
        return f"<ScoreReport of {len(self)} items: {means}>"

    def summary(self) -> dict[str, MetricSummary]:
        """Means and counts by label; failed items never enter a mean."""
        return {label: self._summary(label) for label in self.labels}

    def _summary(self, label: str) -> MetricSummary:
        results = [item.scores[label] for item in self.items]
        counts = Counter(result.status for result in results)
        scored = [result for result in results if result.status is Status.OK]
        scores = [result.score for result in scored if result.score is not None and isfinite(result.score)]
        judged = [result for result in scored if result.correct is not None]
        verdicts = [result.correct is True for result in judged]
        certain = [result.correct is True for result in judged if ScoreWarning.UNCERTAIN not in result.warnings]
        with_empty = len(scores) + counts[Status.EMPTY_PREDICTION]
        return MetricSummary(
            mean=sum(scores) / len(scores) if scores else None,
            mean_empty_as_wrong=sum(scores) / with_empty if with_empty else None,
            share_right=sum(verdicts) / len(verdicts) if verdicts else None,
            scored=len(scores),
            counts=dict(counts),
            uncertain=len(verdicts) - len(certain),
            share_right_certain=sum(certain) / len(certain) if certain else None,
        )

    def to_records(self) -> list[dict[str, Any]]:
        """One flat record per item and metric, all with the same keys, as data frames like them.

        Keys: index, id, metric (the label), score, status, message, warnings, matched_reference, correct, the parts of
        all metrics (None for those without), cache hits by level (`hits_…`), timing (`…_s`), line.
        """
        return [
            {
                "index": item.index,
                "id": item.id,
                "metric": label,
                "score": result.score,
                "status": str(result.status),
                "message": result.message,
                "warnings": [str(warning) for warning in result.warnings],
                "matched_reference": result.matched_reference,
                "correct": result.correct,
                **{name: _cell(getattr(result.parts, name, None)) for name in _PARTS},
                **{f"hits_{name}": getattr(result.cache_hits, name) for name in _HITS},
                **{name: getattr(result.timing, name) for name in _TIMES},
                "line": result.provenance.line if result.provenance else "",
            }
            for item in self.items
            for label, result in item.scores.items()
        ]

    def to_pandas(self) -> "pd.DataFrame":
        """The records as a DataFrame, without the columns that have nothing in any row.

        Raises:
            MissingExtra: pandas is not installed.
        """
        try:
            import pandas as pd  # noqa: PLC0415 - optional and slow to import
        except ImportError:
            raise MissingExtra("to_pandas needs pandas: pip install pandas") from None
        records = self.to_records()
        used = [
            column
            for column in (records[0] if records else _ALWAYS)
            if column in _ALWAYS or any(_is_informative(column, record[column]) for record in records)
        ]
        return pd.DataFrame([{column: record[column] for column in used} for record in records], columns=used)

    def to_arrow(self) -> "pa.Table":
        """The records as an Arrow table; the schema does not depend on the values.

        Raises:
            MissingExtra: pyarrow is not installed.
        """
        try:
            import pyarrow as pa  # noqa: PLC0415 - optional and slow to import
        except ImportError:
            raise MissingExtra("to_arrow needs pyarrow: pip install 'gradewire[parquet]'") from None
        arrow: dict[object, pa.DataType] = {
            float: pa.float64(),
            float | None: pa.float64(),
            tuple[float, ...]: pa.list_(pa.float64()),
            tuple[str, ...]: pa.list_(pa.string()),
            Mapping[str, float]: pa.map_(pa.string(), pa.float64()),
            Mapping[str, str]: pa.map_(pa.string(), pa.string()),
            int: pa.int64(),
            int | None: pa.int64(),
            str: pa.string(),
            str | None: pa.string(),
            bool: pa.bool_(),
            bool | None: pa.bool_(),
        }
        columns: dict[str, pa.DataType] = {
            "index": pa.int64(),
            "id": pa.string(),
            "metric": pa.string(),
            "score": pa.float64(),
            "status": pa.string(),
            "message": pa.string(),
            "warnings": pa.list_(pa.string()),
            "matched_reference": pa.int64(),
            "correct": pa.bool_(),
            **{name: arrow[PART_FIELDS[name]] for name in _PARTS},
            **dict.fromkeys((f"hits_{name}" for name in _HITS), pa.int64()),
            **dict.fromkeys(_TIMES, pa.float64()),
            "line": pa.string(),
        }
        return pa.Table.from_pylist(self.to_records(), schema=pa.schema(columns))


def _is_informative(column: str, value: object) -> bool:
    return bool(value) if column.startswith("hits_") or column in _TIMES else value not in (None, "", [])


def _cell(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value
