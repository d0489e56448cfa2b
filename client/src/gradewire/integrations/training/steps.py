"""Training steps whose answers are scored: their items in JSON lines, their states and their scores."""

import base64
import io
import json
import secrets
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from operator import itemgetter
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Self

from gradewire._calls.submit import snapshot
from gradewire.items import Item
from gradewire.results import ScoreReport, Status

_NAMES = tuple(field.name for field in fields(Item))


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
        share_right: The share of scored items that the metric calls correct; None if the metric returns no verdicts.
        scored: The number of items with a score.
        not_scored_share: The share of items without a score, 0 to 1; 0 if there are no items.
        counts: The number of items by status.
        line: The metric identifier that reproduces the scores; "" if no item reached a server.
        digest: The digest of the metric's model, 64 hex digits; "" without a model.
        message: The message of the first item without a score; "" if all items were scored.
        uncertain: The number of items with an unreliable verdict (UNCERTAIN).
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
        """Return the values to log: `NAME/LABEL/mean`, `…/share_right`, `…/uncertain` and `…/not_scored`.

        Missing values are left out; `…/uncertain`, the number of UNCERTAIN items, is beside `…/share_right`.
        """
        values: dict[str, float] = {}
        for label, metric in self.metrics.items():
            if metric.mean is not None:
                values[f"{self.name}/{label}/mean"] = metric.mean
            if metric.share_right is not None:
                values[f"{self.name}/{label}/share_right"] = metric.share_right
                values[f"{self.name}/{label}/uncertain"] = metric.uncertain
            values[f"{self.name}/{label}/not_scored"] = metric.not_scored_share
        return values

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary that JSON can store."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the step from its `to_dict` values.

        Raises:
            KeyError, TypeError, ValueError: `to_dict` did not return these values.
        """
        metrics = {label: StepMetric(**metric) for label, metric in values["metrics"].items()}
        return cls(**{**values, "metrics": metrics, "state": StepState(values["state"])})


def new_run_name() -> str:
    """Return a name for a training run: the time in UTC, and some random digits."""
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}-{secrets.token_hex(3)}"


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
    unscored = (item.scores[label] for item in report if item.scores[label].status is not Status.OK)
    first = next(unscored, None)
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
    )


def encode_row(item: Any, read: AbstractSet[str]) -> bytes:
    """Return an item as a line of JSON, with the newline. Never raise.

    An item that cannot be encoded becomes a row that gets the status INVALID_INPUT.

    Args:
        item: The item that the caller passed.
        read: Lower-case names of the fields to keep; see `snapshot`.
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
