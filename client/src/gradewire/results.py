"""Results of calls: scores of items and whole reports with their provenance, and the models and metrics of a server."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from math import isfinite
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, get_type_hints, overload

from gradewire.errors import needed_by
from gradewire.metrics.base import Metric
from gradewire_proto.parts import PART_TYPES, Parts

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


PART_FIELDS: Mapping[str, object] = MappingProxyType(
    {part.name: get_type_hints(kind)[part.name] for kind in PART_TYPES.values() for part in fields(kind)}
)
"""The types of all fields of parts, by name; where kinds share a name, they share its type."""


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """An encoder or a judge.

    Attributes:
        digest: 64 hex digits; empty while MISSING.
        state: LOADED, BUILT, MISSING or BROKEN; UNKNOWN where the server is newer and says something else.
        message: What `state` does not say, for people.
        how_to_get: The command that makes it available; empty when it is.
        is_default: Whether it is what a call without a model (or judge) takes.
        max_tokens: Longer texts are cut here, with the warning TRUNCATED.
        numeric_class: fp32-cpu, …: part of the digest, for it can change scores.
        kind: "encoder", "grader" or "judge".
        remarks: What one should know before using it.
        without_metrics: Metrics that the encoder cannot compute as it is built, by name, and why.
        sees_images: Whether the judge can be shown pictures; certain once it is LOADED, until then what the server's
            settings say of it.
    """

    name: str
    digest: str
    state: str
    message: str
    how_to_get: str
    is_default: bool
    dims: int
    max_tokens: int
    licence: str
    numeric_class: str
    kind: str = "encoder"
    remarks: tuple[str, ...] = ()
    without_metrics: Mapping[str, str] = field(default_factory=dict)
    sees_images: bool = False


@dataclass(frozen=True, slots=True)
class MetricParameterInfo:
    """A parameter of a metric, in words."""

    name: str
    description: str
    default_value: str
    allowed: str


@dataclass(frozen=True, slots=True)
class MetricInfo:
    """A metric.

    Attributes:
        minimum: Least possible score.
        maximum: Largest possible score.
        available: False while nothing that it needs is loaded; `missing` says what.
        needs_judge: Whether its model is a judge.
        needs_grader: Whether its model is a grader.
        advice: How it compares with cheaper metrics, where that was measured.
    """

    name: str
    version: int
    description: str
    minimum: float
    maximum: float
    higher_is_better: bool
    citation: str
    parameters: tuple[MetricParameterInfo, ...]
    needs_model: bool
    available: bool
    missing: str
    needs_judge: bool = False
    needs_grader: bool = False
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on one request; 0 means that the server does not say.

    Attributes:
        max_item_bytes: All strings of one item, as UTF-8.
        stream_window_items: Items of one stream in work at a time.
        max_windows: Windows of one prediction that smile looks at, from its first `max_prediction_words` words.
    """

    max_items_per_request: int = 0
    max_metrics_per_request: int = 0
    max_references_per_item: int = 0
    max_item_bytes: int = 0
    max_message_bytes: int = 0
    stream_window_items: int = 0
    max_windows: int = 0
    max_prediction_words: int = 0


@dataclass(frozen=True, slots=True)
class ModelList:
    """The models, metrics and limits of a server.

    Attributes:
        models: Encoders and judges, those that could be had included.
        metrics: With versions, ranges and parameters.
        limits: Of one request.
        server_version: Version of gradewire there.
        comparisons: What `Client.compare` takes, as metrics; their ranges say nothing.
    """

    models: tuple[ModelInfo, ...]
    metrics: tuple[MetricInfo, ...]
    limits: Limits
    server_version: str
    comparisons: tuple[MetricInfo, ...] = ()


class Status(StrEnum):
    """The status of an (item, metric) pair; only OK carries a score. docs/reference/metrics.md has the meanings."""

    OK = "OK"
    INVALID_INPUT = "INVALID_INPUT"
    EMPTY_PREDICTION = "EMPTY_PREDICTION"
    INVALID_PARAMETER = "INVALID_PARAMETER"
    MODEL_UNAVAILABLE = "MODEL_UNAVAILABLE"
    NOT_PREPARED = "NOT_PREPARED"
    UNAVAILABLE = "UNAVAILABLE"
    TIMEOUT = "TIMEOUT"
    UNPARSABLE = "UNPARSABLE"
    INTERNAL = "INTERNAL"
    JUDGE_CANNOT_SEE = "JUDGE_CANNOT_SEE"
    # Of a pair: the judge preferred another answer when the two were shown in the other order.
    INCONSISTENT = "INCONSISTENT"
    # The server is newer and says something that this client does not know.
    UNKNOWN = "UNKNOWN"

    @property
    def may_pass(self) -> bool:
        """True if the same item may be scored when it is sent again later."""
        return self in {Status.UNAVAILABLE, Status.TIMEOUT}


class ScoreWarning(StrEnum):
    """Remarks beside a score, which is valid nevertheless."""

    # A text was longer than the encoder or judge reads, or gave more windows than are looked at.
    TRUNCATED = "TRUNCATED"
    # Threshold and weights are not calibrated for this model: trust the order, not `correct`.
    UNCALIBRATED = "UNCALIBRATED"
    # The probability lies where the metric's verdict is not to be trusted.
    UNCERTAIN = "UNCERTAIN"
    # A judge was not shown all words of the prediction: some call it right, which is for the judge to say.
    MASKED = "MASKED"
    # The server is newer and says something that this client does not know.
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True)
class CacheHits:
    """The sources from which texts were answered, counted in texts.

    Attributes:
        memory: The server's own memory.
        disk: Its store on disk.
        redis: The shared cache.
        joined: Another request was computing the same text.
        computed: Went through the encoder.
    """

    memory: int = 0
    disk: int = 0
    redis: int = 0
    joined: int = 0
    computed: int = 0


@dataclass(frozen=True, slots=True)
class Timing:
    """The time spent in the server, seconds; work shared by several items is counted in full for each."""

    queue_s: float = 0.0
    cache_s: float = 0.0
    tokenize_s: float = 0.0
    inference_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Provenance:
    """The record of what is needed to get the same score again.

    Attributes:
        name: The metric's name.
        version: Of the metric's definition; raised whenever a score can change.
        model: Encoder or judge, empty for metrics without one.
        model_digest: 64 hex digits; empty for metrics without a model, or when it is not loaded.
        line: All of it on one line, which `metrics=` takes.
        metric: The metric with every default filled in; None when this client does not know it.
        reference_set: The prepared set that the score depends on (synthetic answers, weights of words); else empty.
        prompt: NAME/VERSION of the prompt that a judge was shown; empty for metrics without one.
        prompt_digest: SHA-256 of that prompt file, 64 hex digits, or empty.
        calibration: Whose fit was used, for people: always of `correctness` (but for features_only), of others where a
            threshold or weight was left open and filled in; or empty.
        corpus_digest: 32 hex digits over the corpus of the set, where the metric counts over a prepared one; or empty.
            `reference_set="NAME@DIGEST"` asks for that corpus or none.
        judge_model: Judge of a metric that asks one beside its encoder (auto), else empty.
        judge_digest: Its 64 hex digits, or empty.
        grader_model: Grader that correctness asked beside its encoder, else empty.
        grader_digest: Its 64 hex digits, or empty.
    """

    name: str
    version: int
    model: str
    model_digest: str
    line: str
    metric: Metric | None = None
    reference_set: str = ""
    prompt: str = ""
    prompt_digest: str = ""
    calibration: str = ""
    corpus_digest: str = ""
    judge_model: str = ""
    judge_digest: str = ""
    grader_model: str = ""
    grader_digest: str = ""


@dataclass(frozen=True, slots=True)
class MetricScore:
    """Score or failure of one metric on one item.

    Attributes:
        score: Present exactly when `status` is OK.
        status: OK, or why there is no score.
        message: What went wrong and what to do; empty when OK.
        warnings: Remarks beside a score that stands.
        matched_reference: Index of the reference that gave the score.
        parts: What the score is made of; None for metrics without parts.
        correct: Whether the answer counts as right; None where the metric gives no verdict.
        cache_hits: Where the texts came from.
        timing: Where the time went.
        provenance: What reproduces the score; None for an item that never reached a server.
        retry_after_s: Seconds after which sending the item again may help, where the server can tell (UNAVAILABLE).
    """

    score: float | None
    status: Status
    message: str = ""
    warnings: tuple[ScoreWarning, ...] = ()
    matched_reference: int | None = None
    parts: Parts | None = None
    correct: bool | None = None
    cache_hits: CacheHits = CacheHits()
    timing: Timing = Timing()
    provenance: Provenance | None = None
    retry_after_s: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """For JSON: score, status, then what there is of message, warnings, reference, parts, verdict, line; flat."""
        row: dict[str, Any] = {"score": self.score, "status": str(self.status)}
        if self.message:
            row["message"] = self.message
        if self.warnings:
            row["warnings"] = [str(warning) for warning in self.warnings]
        if self.matched_reference is not None:
            row["matched_reference"] = self.matched_reference
        if self.parts is not None:
            for name in type(self.parts).__slots__:
                value = getattr(self.parts, name)
                if value is not None:
                    row[name] = list(value) if isinstance(value, tuple) else value
        if self.correct is not None:
            row["correct"] = self.correct
        if self.provenance is not None:
            row["line"] = self.provenance.line
        return row


@dataclass(frozen=True, slots=True)
class ItemScores:
    """All results of one item.

    Attributes:
        index: Position of the item in the call, from 0.
        id: As the caller gave it.
        scores: One per metric, by label, in the order of the call.
    """

    index: int
    id: str
    scores: Mapping[str, MetricScore]

    def to_dict(self) -> dict[str, Any]:
        """For JSON: `{"id", "index", "scores": {label: {"score", "status", …}}}`."""
        return {
            "id": self.id,
            "index": self.index,
            "scores": {label: score.to_dict() for label, score in self.scores.items()},
        }


_PARTS = tuple(name for name in PART_FIELDS if name != "correct")
_HITS = tuple(field.name for field in fields(CacheHits))
_ALWAYS = ("index", "id", "metric", "score", "status")
_TIMES = tuple(field.name for field in fields(Timing))
_COLUMNS: Mapping[str, object] = {
    "index": int,
    "id": str,
    "metric": str,
    "score": float,
    "status": str,
    "message": str,
    "warnings": tuple[str, ...],
    "matched_reference": int,
    "correct": bool,
    **{name: PART_FIELDS[name] for name in _PARTS},
    **dict.fromkeys((f"hits_{name}" for name in _HITS), int),
    **dict.fromkeys(_TIMES, float),
    "line": str,
}
"""Types of the columns of records."""


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
    """The results in the order of the items; a sequence of `ItemScores`.

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
        """Return the records as a DataFrame, without the columns that have nothing in any row.

        Raises:
            MissingExtra: pandas is not installed.
        """
        with needed_by("to_pandas", "pandas"):
            import pandas as pd  # noqa: PLC0415 - optional and slow to import
        records = self.to_records()
        used = [
            column
            for column in _COLUMNS
            if column in _ALWAYS or any(_is_informative(column, record[column]) for record in records)
        ]
        return pd.DataFrame([{column: record[column] for column in used} for record in records], columns=used)

    def to_arrow(self) -> "pa.Table":
        """Return the records as an Arrow table; the schema does not depend on the values.

        Raises:
            MissingExtra: pyarrow is not installed.
        """
        with needed_by("to_arrow", "gradewire[parquet]"):
            import pyarrow as pa  # noqa: PLC0415 - optional and slow to import
        arrow: dict[object, pa.DataType] = {
            float: pa.float64(),
            tuple[float, ...]: pa.list_(pa.float64()),
            tuple[str, ...]: pa.list_(pa.string()),
            Mapping[str, float]: pa.map_(pa.string(), pa.float64()),
            Mapping[str, str]: pa.map_(pa.string(), pa.string()),
            int: pa.int64(),
            str: pa.string(),
            bool: pa.bool_(),
        }
        arrow |= {kind | None: arrow[kind] for kind in (float, int, str, bool)}
        columns = {name: arrow[kind] for name, kind in _COLUMNS.items()}
        return pa.Table.from_pylist(self.to_records(), schema=pa.schema(columns))


def _is_informative(column: str, value: object) -> bool:
    return bool(value) if column.startswith("hits_") or column in _TIMES else value not in (None, "", [])


def _cell(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value
