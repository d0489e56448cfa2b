"""Training steps whose answers are scored: their items in JSON lines, their states and their scores."""

import base64
import hashlib
import io
import json
import secrets
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from operator import itemgetter
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Final, Self

from gradewire._calls.submit import snapshot
from gradewire.intervals import mean_interval, share_interval
from gradewire.items import Item
from gradewire.results import ScoreReport, Status

_NAMES = tuple(field.name for field in fields(Item))
ESTIMATES: Final = (
    *("mean", "mean_low", "mean_high", "mean_empty_as_wrong"),
    *("share_right", "share_right_low", "share_right_high"),
)
"""Values of a `StepMetric` that are estimates, with the bounds of their 95 % intervals."""
_BOUNDS: Final = tuple(name for name in ESTIMATES if name.endswith(("_low", "_high")))
_TEXT_FIELDS: Final = (str, bool, int, float)


class StepState(StrEnum):
    """The state of a step."""

    # The step waits on disk, or is being scored.
    NOT_SCORED = "not_scored"
    SCORED = "scored"
    # The scorer gave up the step, because the spool or the disk was full.
    DROPPED = "dropped"
    # The step was damaged on disk. Its remaining bytes are in the spool's folder `corrupt`.
    CORRUPT = "corrupt"


@dataclass(frozen=True, slots=True)
class StepMetric:
    """One metric over all items of a step.

    Attributes:
        mean: The mean over scored items; None if no item was scored.
        mean_empty_as_wrong: The mean if each empty prediction counts as 0; None without a score, unless all predictions
            are empty. Choose checkpoints by this mean, because a model that answers less often cannot raise it.
        share_right: The share of scored items that the metric calls correct; None if the metric returns no verdicts.
        scored: The number of items with a score.
        not_scored_share: The share of items without a score, 0 to 1; 0 if there are no items.
        counts: The number of items by status.
        line: The metric identifier that reproduces the scores; "" if no item reached a server.
        digest: The digest of the metric's model, 64 hex digits; "" without a model.
        message: The message of the first item without a score; "" if all items were scored.
        uncertain: The number of items with an unreliable verdict (UNCERTAIN).
        mean_low, mean_high: The 95 % interval of the mean (Student's t); None with fewer than three scored items.
        share_right_low, share_right_high: The 95 % interval of `share_right` (Wilson); None without verdicts.
    """

    mean: float | None
    share_right: float | None
    scored: int
    not_scored_share: float
    counts: Mapping[str, int]
    line: str = ""
    digest: str = ""
    message: str = ""
    uncertain: int = 0
    mean_low: float | None = None
    mean_high: float | None = None
    share_right_low: float | None = None
    share_right_high: float | None = None
    mean_empty_as_wrong: float | None = None


@dataclass(frozen=True, slots=True)
class StepScores:
    """The state and the scores of a submitted step.

    Attributes:
        step: The training step that was passed to `ValidationScorer.submit`.
        name: The data set's name.
        items: The number of items.
        state: The step's state.
        metrics: The results by metric label; empty unless SCORED.
        problem: The reason for missing scores; "" if SCORED, or if nothing has failed so far.
        submitted_unix_s: The time of the submission, in seconds since 1970.
        ended_unix_s: The time at which the step was scored or given up, in seconds since 1970; None for a waiting step.
        run: The name of the training run that submitted the step; "" for steps of an earlier version of gradewire.
    """

    step: int
    name: str
    items: int
    state: StepState
    metrics: Mapping[str, StepMetric] = field(default_factory=dict)
    problem: str = ""
    submitted_unix_s: float = 0.0
    ended_unix_s: float | None = None
    run: str = ""

    def scalars(self) -> dict[str, float]:
        """Return the values to log.

        These are `NAME/LABEL/mean`, `…/mean_empty_as_wrong`, `…/share_right`, `…/uncertain` and `…/not_scored`.
        The bounds of the 95 % intervals are `…/mean_low`, `…/mean_high`, `…/share_right_low` and `…/share_right_high`.
        Missing values are left out; `…/uncertain`, the number of UNCERTAIN items, is beside `…/share_right`.
        """
        values: dict[str, float] = {}
        for label, metric in self.metrics.items():
            estimates = {name: value for name in ESTIMATES if (value := getattr(metric, name)) is not None}
            values |= {f"{self.name}/{label}/{name}": value for name, value in estimates.items()}
            if metric.share_right is not None:
                values[f"{self.name}/{label}/uncertain"] = metric.uncertain
            values[f"{self.name}/{label}/not_scored"] = metric.not_scored_share
        return values

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary that JSON can store, without unknown bounds of intervals."""
        values = asdict(self)
        for metric in values["metrics"].values():
            for name in _BOUNDS:
                if metric[name] is None:
                    del metric[name]
        return values

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the step from its `to_dict` values.

        Raises:
            KeyError, TypeError, ValueError: `to_dict` did not return these values.
        """
        metrics = {label: StepMetric(**metric) for label, metric in values["metrics"].items()}
        return cls(**{**values, "metrics": metrics, "state": StepState(values["state"])})


def new_run_name() -> str:
    """Return a name for a training run, which can be a folder's: the time in UTC, and some random digits."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"


def latest_run(submitted: Iterable[tuple[str, float]]) -> str:
    """Return the run of the latest submission, or "" without one. `submitted` has runs and times of submission."""
    return max(submitted, key=itemgetter(1), default=("", 0.0))[0]


@dataclass(frozen=True, slots=True)
class StepHeader:
    """The description of a step. The header does not contain the step's rows.

    Attributes:
        metrics: Metric identifiers by label; None for the server's default metrics.
        reference_set: The name of the call's reference set; "" if the call has none.
        run: See `StepScores`.
    """

    step: int
    name: str
    submitted_unix_s: float
    metrics: dict[str, str] | None
    reference_set: str = ""
    run: str = ""

    def result(
        self, state: StepState, problem: str, finished_unix_s: float | None = None, *, items: int = 0
    ) -> StepScores:
        """Return the step's result without scores."""
        return StepScores(
            step=self.step,
            name=self.name,
            items=items,
            state=state,
            problem=problem,
            submitted_unix_s=self.submitted_unix_s,
            ended_unix_s=finished_unix_s,
            run=self.run,
        )


@dataclass(slots=True, eq=False)
class WaitingStep:
    """A step that waits on disk.

    Attributes:
        sequence: The step's position among all submissions to the directory.
        failures: The number of attempts that failed in this process.
        due_s: The earliest time of the next attempt, in monotonic seconds.
        problem: The last failure's message; "" if no attempt failed.
        is_refused: True if the last attempt failed for a reason that may last, such as a token or a metric.
        is_delivering: True while sinks and callbacks receive the scores.
        unwritten: Scores that sinks and callbacks have received but the disk could not store; usually None.
    """

    sequence: int
    header: StepHeader
    items: int
    size_bytes: int
    failures: int = 0
    due_s: float = 0.0
    problem: str = ""
    is_refused: bool = False
    is_delivering: bool = False
    unwritten: StepScores | None = None

    def finished(self, state: StepState, problem: str, finished_unix_s: float | None = None) -> StepScores:
        """Return the step's result without scores."""
        return self.header.result(state, problem, finished_unix_s, items=self.items)


def step_metrics(report: ScoreReport) -> dict[str, StepMetric]:
    """Return a report's results by label."""
    return {label: _step_metric(report, label) for label in report.labels}


def _step_metric(report: ScoreReport, label: str) -> StepMetric:
    summary = report.summary()[label]
    provenance = report.provenance.get(label)
    results = [item.scores[label] for item in report]
    first = next((result for result in results if result.status is not Status.OK), None)
    scored = [result for result in results if result.status is Status.OK]
    mean_low, mean_high = mean_interval([result.score for result in scored if result.score is not None])
    verdicts = [result.correct for result in scored if result.correct is not None]
    share_low, share_high = share_interval(sum(verdicts), len(verdicts))
    return StepMetric(
        mean=summary.mean,
        share_right=summary.share_right,
        scored=summary.scored,
        not_scored_share=1 - summary.scored / len(report) if len(report) else 0.0,
        counts={str(status): count for status, count in summary.counts.items()},
        line=provenance.line if provenance else "",
        digest=provenance.model_digest if provenance else "",
        message=first.message or str(first.status) if first else "",
        uncertain=summary.uncertain,
        mean_low=mean_low,
        mean_high=mean_high,
        share_right_low=share_low,
        share_right_high=share_high,
        mean_empty_as_wrong=summary.mean_empty_as_wrong,
    )


def encode_results(items: Sequence[Any], report: ScoreReport) -> bytes:
    """Return a step's results as `gradewire score --out` writes rows, with each item's texts in `input`.

    Args:
        items: The step's items, as `decode_row` returned them.
        report: The items' results.
    """
    lines = {label: provenance.line for label, provenance in report.provenance.items()}
    encoded = []
    for item, scored in zip(items, report, strict=True):
        row = scored.to_dict()
        for label, result in row["scores"].items():
            result.pop("line", None)
            if not scored.index:  # readers take the identifiers from the first row
                result["line"] = lines.get(label, "")
        digest = hashlib.blake2b(json.dumps(item, default=_stand_in).encode(), digest_size=16).hexdigest()
        row |= {"id": scored.id or str(scored.index), "input": _texts_of(item), "digest": digest}
        encoded.append(json.dumps(row, default=_stand_in).encode() + b"\n")
    return b"".join(encoded)


def _texts_of(item: Any) -> dict[str, Any]:
    named = item if isinstance(item, Mapping) else {}
    return {name: value for name, value in named.items() if value not in ("", []) and _is_text(value)}


def _is_text(value: object) -> bool:
    """Return True for texts, numbers and lists of them, but not for pictures."""
    if isinstance(value, list):
        return all(isinstance(each, _TEXT_FIELDS) for each in value)
    return isinstance(value, _TEXT_FIELDS)


def encode_row(item: Any, read: AbstractSet[str]) -> bytes:
    """Return an item as a line of JSON, with the newline. Never raise.

    An item that cannot be encoded becomes a row that gets the status INVALID_INPUT.

    Args:
        item: The item that the caller passed.
        read: Names of the keys to keep; see `snapshot`.
    """
    try:
        taken, _ = snapshot(item, read)
        if isinstance(taken, Item):
            taken = {name: getattr(taken, name) for name in _NAMES}
        elif isinstance(taken, Mapping):
            taken = {str(name): value for name, value in taken.items()}
        line = json.dumps(taken, default=_stand_in)
    except Exception:  # noqa: BLE001 - a caller's values may raise anything
        line = json.dumps(_unreadable(item))
    return line.encode() + b"\n"


def decode_row(line: bytes) -> Any:
    """Return the item in a line that `encode_row` wrote.

    Raises:
        ValueError: `encode_row` did not write the line.
    """
    return json.loads(line, object_hook=_restored)


def _stand_in(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Decimal | Fraction):
        return str(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return {"$bytes": base64.b64encode(bytes(value)).decode()}
    if isinstance(value, PathLike):
        return {"$path": str(fspath(value))}
    if callable(getattr(value, "save", None)) and hasattr(value, "mode"):  # a Pillow image
        file = io.BytesIO()
        value.save(file, "PNG")
        return {"$bytes": base64.b64encode(file.getvalue()).decode()}
    return _unreadable(value)


def _unreadable(value: Any) -> dict[str, str]:
    return {"$unreadable": type(value).__name__}


def _restored(value: dict[str, Any]) -> Any:
    if len(value) == 1:
        ((key, content),) = value.items()
        if key == "$bytes" and isinstance(content, str):
            return base64.b64decode(content, validate=True)
        if key == "$path" and isinstance(content, str):
            return Path(content)
    return value
