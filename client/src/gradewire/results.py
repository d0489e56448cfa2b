"""Results of calls: scores and reports with their provenance, and the models and metrics that a server lists."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from math import isfinite
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, get_type_hints, overload

from gradewire._judged_means import deciders_of, lacks_judge
from gradewire.errors import needed_by
from gradewire.metrics.base import Metric
from gradewire_proto.parts import PART_TYPES, Parts

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


PART_FIELDS: Mapping[str, object] = MappingProxyType(
    {part.name: get_type_hints(kind)[part.name] for kind in PART_TYPES.values() for part in fields(kind)}
)
"""Types of the parts' fields, by field name. Fields with the same name have the same type."""


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """An encoder, a grader or a judge.

    Attributes:
        digest: 64 hex digits; empty if `state` is MISSING.
        state: LOADED, BUILT, MISSING or BROKEN; UNKNOWN for a state that only newer clients know.
        message: Details about `state`, for users.
        how_to_get: The command that makes the model available; empty if it is already available.
        is_default: True if calls that name no model (or judge) use this model.
        max_tokens: Maximum number of tokens; longer texts are truncated, with the warning TRUNCATED.
        numeric_class: Precision and hardware, such as fp32-cpu; part of the digest, because both can change scores.
        kind: "encoder", "grader" or "judge".
        without_metrics: Metrics that the encoder cannot compute, with the reasons.
        sees_images: True if the judge accepts pictures. Until the judge is LOADED, this is the server's setting.
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
    """Notes to read before use."""
    without_metrics: Mapping[str, str] = field(default_factory=dict)
    sees_images: bool = False


@dataclass(frozen=True, slots=True)
class MetricParameterInfo:
    """A description of a metric's parameter."""

    name: str
    description: str
    default_value: str
    allowed: str


@dataclass(frozen=True, slots=True)
class MetricInfo:
    """A description of a metric.

    Attributes:
        minimum: Lowest possible score.
        maximum: Highest possible score.
        available: False while something that the metric needs is not loaded; `missing` says what.
        needs_judge: True if the metric's model is a judge.
        needs_grader: True if the metric's model is a grader.
        advice: A comparison with cheaper metrics; empty if the metric has not been compared.
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
    """Limits on a request; 0 means that the server does not report the limit.

    Attributes:
        max_item_bytes: Maximum size of all strings in an item, in UTF-8.
        stream_window_items: Maximum number of items in progress in one stream.
        max_windows: Maximum number of windows that smile compares in a prediction's first `max_prediction_words` words.
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
        models: Encoders, graders and judges, including models that are not built.
        metrics: Metrics with versions, ranges and parameters.
        limits: Limits on a request.
        server_version: The server's gradewire version.
        comparisons: Comparisons for `Client.compare`; ignore their `minimum` and `maximum`.
    """

    models: tuple[ModelInfo, ...]
    metrics: tuple[MetricInfo, ...]
    limits: Limits
    server_version: str
    comparisons: tuple[MetricInfo, ...] = ()


class Status(StrEnum):
    """The status of one metric's result for one item. Only OK comes with a score; see docs/reference/metrics.md."""

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
    # The judge's verdicts in the two orders of a pair contradict each other.
    INCONSISTENT = "INCONSISTENT"
    TIED = "TIED"  # all pairs of an answer in a ranking are ties
    # The server is newer and sent a status that this client does not know.
    UNKNOWN = "UNKNOWN"

    @property
    def may_pass(self) -> bool:
        """True if the same item may get a score when it is sent again."""
        return self in {Status.UNAVAILABLE, Status.TIMEOUT}


class ScoreWarning(StrEnum):
    """A note on a valid score."""

    # A text was too long for the encoder or judge, or had too many windows.
    TRUNCATED = "TRUNCATED"
    # The threshold is a general one, chosen for other weights. Trust the order of scores, not `correct`.
    UNCALIBRATED = "UNCALIBRATED"
    # The probability lies in the band of unreliable verdicts.
    UNCERTAIN = "UNCERTAIN"
    # The server hid words of the prediction from the judge, because they claim that the answer is right.
    MASKED = "MASKED"
    # The server is newer and sent a warning that this client does not know.
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True)
class CacheHits:
    """Number of texts by the source of their result.

    Attributes:
        memory: Found in the server's memory.
        disk: Found in the server's store on disk.
        redis: Found in the shared cache.
        joined: Shared with a request that was already computing the same text.
        computed: Computed for this request.
    """

    memory: int = 0
    disk: int = 0
    redis: int = 0
    joined: int = 0
    computed: int = 0


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds that the server spent, by type of work. Work shared by several items counts in full for each item."""

    queue_s: float = 0.0
    cache_s: float = 0.0
    tokenize_s: float = 0.0
    inference_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Provenance:
    """Everything that you need to reproduce a score.

    Attributes:
        name: The metric's name.
        version: Version of the metric's definition; increased whenever scores can change.
        model: Encoder, grader or judge; empty for metrics without a model.
        model_digest: 64 hex digits; empty if the metric has no model, or the model is not loaded.
        line: The full metric identifier; pass it as `metrics=` to reproduce the score.
        metric: The metric with every default filled in; None if this client does not know the metric.
        reference_set: The prepared set whose synthetic answers or word weights the score used; empty without a set.
        prompt: NAME/VERSION of the judge's prompt; empty without a prompt.
        prompt_digest: SHA-256 of the prompt file, 64 hex digits; empty without a prompt.
        calibration: A description of the fit that supplied the threshold or weights; empty without a fit. Always set
            for `correctness` (except features_only). Set for other metrics only if the fit filled in an unset value.
        corpus_digest: Digest of the prepared corpus that the metric used, 32 hex digits; empty without a corpus.
            `reference_set="NAME@DIGEST"` requires exactly that corpus.
        judge_model: Judge of a metric that also has an encoder (auto); empty for other metrics.
        judge_digest: 64 hex digits; empty if `judge_model` is empty.
        grader_model: Grader of correctness, which also has an encoder; empty for other metrics.
        grader_digest: 64 hex digits; empty if `grader_model` is empty.
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
    """One metric's result for one item: a score or a failure.

    Attributes:
        score: Set if and only if `status` is OK.
        status: OK, or the reason for a missing score.
        message: The error and its remedy; empty if `status` is OK.
        warnings: Notes on a valid score.
        matched_reference: Index of the reference that the score is based on.
        parts: Components of the score; None for metrics without parts.
        correct: True if the answer counts as right; None if the metric has no verdict.
        cache_hits: Number of texts by the source of their result.
        timing: Seconds by type of work.
        provenance: Everything needed to reproduce the score; None for an item that never reached a server.
        retry_after_s: Seconds to wait before a retry, if the server can estimate them (UNAVAILABLE).
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
        """Return a flat dict for JSON with the score, the status, and all other fields and parts that are not empty."""
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
                if value is not None and (self.score is not None or value not in ("", ())):
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
        id: The caller's id.
        scores: Results by metric label, in the order of the call's metrics.
    """

    index: int
    id: str
    scores: Mapping[str, MetricScore]

    def to_dict(self) -> dict[str, Any]:
        """Return a dict for JSON: `{"id", "index", "scores": {label: {"score", "status", …}}}`."""
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


@dataclass(frozen=True, slots=True)
class MetricSummary:
    """A summary of one metric's results over all items of a call.

    If a judge graded no item, although some items needed it, there is neither a mean nor a share: the items that a rule
    graded say nothing about the others.

    Attributes:
        mean: Mean score of the scored items; None if no item was scored.
        mean_empty_as_wrong: Mean score if each empty prediction counts as 0; None without a score, unless all
            predictions are empty.
        share_right: Share of right answers, 0 to 1, among items with a verdict; None if no item has a verdict.
        scored: Number of items with a score.
        uncertain: Number of items with an unreliable verdict (UNCERTAIN).
        share_right_certain: `share_right` among the items with a certain verdict; None if no verdict is certain.
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
    """A sequence of `ItemScores`, in the order of the call's items.

    Attributes:
        items: The results.
        labels: Metric labels, in the order of the call's metrics.
        provenance: Everything needed to reproduce the scores, by label; empty if no item reached a server.
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
            if 2 * summary.scored >= len(self) or summary.mean is None
            else f"{label} {summary.scored} of {len(self)} items: {summary.mean:.4f}"
            for label, summary in self.summary().items()
        )
        return f"<ScoreReport of {len(self)} items: {means}>"

    def summary(self) -> dict[str, MetricSummary]:
        """Return means and counts by label. Means never include failed items."""
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
        known = not lacks_judge(deciders_of(result.parts for result in results), counts)
        all_empty = not scores and with_empty == len(results) > 0
        return MetricSummary(
            mean=sum(scores) / len(scores) if scores and known else None,
            mean_empty_as_wrong=sum(scores) / with_empty if (scores and known) or all_empty else None,
            share_right=sum(verdicts) / len(verdicts) if verdicts and known else None,
            scored=len(scores),
            counts=dict(counts),
            uncertain=len(verdicts) - len(certain),
            share_right_certain=sum(certain) / len(certain) if certain and known else None,
        )

    def to_records(self) -> list[dict[str, Any]]:
        """Return one flat record per item and metric, all with the same keys, for data frames.

        Keys: index, id, metric (the label), score, status, message, warnings, matched_reference, correct, the parts of
        all metrics (None if the record's metric lacks the part), cache hits by level (`hits_…`), timing (`…_s`), line.
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
        """Return the records as a DataFrame, without columns that are empty in every row.

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
