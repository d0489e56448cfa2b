"""The rows to label, in the order in which annotators see them, with their labels and the agreement so far."""

from __future__ import annotations

import math
import random
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from gradewire.metrics.choice import parse_metric_line
from gradewire.results import ScoreWarning
from gradewire_cli.pages.pictures import Album
from gradewire_cli.problems import InputError
from gradewire_cli.results.error_classes import CLASSES, ErrorClass
from gradewire_cli.results.resumable_output import verdict
from gradewire_cli.rows.formats import printable
from gradewire_cli.rows.proposed_flags import BAD_GOLD, TIME_DEPENDENT, proposed_flags
from gradewire_cli.rows.row import MOST_PICTURES
from gradewire_cli.scoring.labels_file import id_key
from gradewire_stats.agreement.rows import RIGHT_FROM
from gradewire_stats.annotators import annotator_agreement

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from gradewire_cli.label.label_file import LabelFile
    from gradewire_cli.rows.row import Row
    from gradewire_stats.bootstrap import Estimate

Order = Literal["uncertain", "file", "random"]
_ORDERED_BY: Final = ("correctness", "smile")
"""The metrics whose uncertainty orders the rows, the preferred one first."""
FLAGS: Final = (TIME_DEPENDENT, BAD_GOLD)
"""The flags that annotators can set."""
_PROBABLE: Final = 0.5
_SMILE_CUT: Final = 2 / 3
"""SMILE's threshold without a fit."""
_DRAWS: Final = 200
_CHARACTERS: Final = 20_000
"""Maximum number of characters of a text on the page."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """The uncertainty of the verdict on an answer.

    Attributes:
        is_uncertain: True if the metric marks its verdict UNCERTAIN.
        distance: Distance of the score from the threshold, infinite without a score.
    """

    is_uncertain: bool
    distance: float


def doubt_of(output: Mapping[str, Any]) -> Doubt:
    """Return the doubt about a row of `gradewire score`, by `correctness` or, without it, by `smile`.

    Raises:
        InputError: The row has the scores of neither metric.
    """
    label = _ordering_label(output)
    result = output["scores"][label]
    if result["score"] is None:
        return Doubt(is_uncertain=False, distance=math.inf)
    distance = abs(result["score"] - _threshold(label, result))
    return Doubt(is_uncertain=ScoreWarning.UNCERTAIN in result.get("warnings", ()), distance=distance)


def called_right(output: Mapping[str, Any]) -> bool | None:
    """Return the verdict of the metric that `doubt_of` reads, or None without one; raise InputError like it."""
    label = _ordering_label(output)
    return verdict(label, output["scores"][label])


def _ordering_label(output: Mapping[str, Any]) -> str:
    scores = output["scores"]
    label = next((label for name in _ORDERED_BY for label in scores if _name(label, scores[label]) == name), None)
    if label is None:
        raise InputError(
            f"the scores have neither {' nor '.join(_ORDERED_BY)}, whose uncertainty orders the rows. Score with "
            "--metrics correctness, or leave out --scores"
        )
    return str(label)


def classes_for(*, called_right: bool) -> list[ErrorClass]:
    """Return KNVQA's classes of a verdict's error: of right answers called wrong, or of wrong ones called right."""
    call = "right" if called_right else "wrong"
    return [each for each in CLASSES if each.kind == "class" and call in each.calls]


def _name(label: str, result: Mapping[str, Any]) -> str:
    return str(result.get("line", label)).partition("?")[0].partition("/")[0].partition(":")[0]


def _threshold(label: str, result: Mapping[str, Any]) -> float:
    if _name(label, result) == _ORDERED_BY[0]:
        return _PROBABLE
    threshold = getattr(parse_metric_line(str(result.get("line", label))), "threshold", None)
    return _SMILE_CUT if threshold is None else float(threshold)


def ordered(rows: Sequence[Row], doubts: Sequence[Doubt], order: Order, seed: int) -> tuple[list[Row], int]:
    """Return the rows in this order, and the number of uncertain rows at the beginning (0 for other orders)."""
    if order == "random":
        mixed = list(rows)
        random.Random(seed).shuffle(mixed)  # noqa: S311 - a reproducible order, not a secret
        return mixed, 0
    if order == "file" or not doubts:
        return list(rows), 0
    places = sorted(range(len(rows)), key=lambda place: (not doubts[place].is_uncertain, doubts[place].distance))
    return [rows[place] for place in places], sum(doubt.is_uncertain for doubt in doubts)


def usable(rows: Iterable[Row]) -> tuple[list[Row], int]:
    """Return the rows with an answer and an id, and the number of other rows.

    Raises:
        InputError: A row has no id, two rows have the same id, or an id cannot be written to a file.
    """
    kept: list[Row] = []
    positions: dict[str, str] = {}
    skipped = 0
    for row in rows:
        if row.item is None or not str(row.item["prediction"]).strip():
            skipped += 1
            continue
        if not row.has_id:
            raise InputError(f"{row.position} has no id for its label. Add a column id, or use --map id=COLUMN")
        if (first := positions.setdefault(id_key(row.id), row.position)) != row.position:
            raise InputError(printable(f"{row.position} has the id of {first}, {row.id}. Give each row its own id"))
        try:
            row.id.encode()
        except UnicodeEncodeError as error:
            raise InputError(printable(f"{row.position}: the id {row.id} is not Unicode. Use another id")) from error
        kept.append(row)
    return kept, skipped


@dataclass(slots=True)
class Session:
    """Rows and labels of one run. Several threads may use it at the same time.

    Attributes:
        rows: The rows in the order in which annotators see them.
        uncertain: Number of rows at the beginning whose verdict is UNCERTAIN.
        folder: The folder to which the rows' pictures are relative.
        verdicts: The metric's verdicts by row index, for rows about whose errors the page asks.
    """

    rows: Sequence[Row]
    uncertain: int
    file: LabelFile
    folder: Path
    verdicts: Mapping[int, bool] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def set(self, position: int, annotator: str, label: float | None) -> None:
        """Store a label for the row at a position, or remove it with None.

        Raises:
            IndexError: There is no row at this position.
            OSError: The label file cannot be written.
        """
        row = self._row(position)
        with self._lock:
            self.file.set(row.id, annotator, label)
            if self._called(row, label) is None and annotator in self.file.classes.get(row.id, {}):
                self.file.set_class(row.id, annotator, None)

    def set_flags(self, position: int, annotator: str, flags: Sequence[str]) -> None:
        """Store an annotator's flags for the row at a position.

        Raises:
            IndexError: There is no row at this position.
            ValueError: A flag is unknown.
            OSError: The label file cannot be written.
        """
        row = self._row(position)
        if unknown := [flag for flag in flags if flag not in FLAGS]:
            raise ValueError(f"{unknown[0]} is no flag")
        with self._lock:
            self.file.set_flags(row.id, annotator, tuple(flag for flag in FLAGS if flag in flags))

    def set_class(self, position: int, annotator: str, error_class: str | None) -> None:
        """Store the class of the metric's error on the row at a position, or remove it with None.

        Raises:
            IndexError: There is no row at this position.
            ValueError: The annotator's label is no different from the verdict, or the class is for other errors.
            OSError: The label file cannot be written.
        """
        row = self._row(position)
        with self._lock:
            called = self._called(row, self.file.label(row.id, annotator))
            known = [] if called is None else [each.name for each in classes_for(called_right=called)]
            if error_class is not None and error_class not in known:
                raise ValueError("there is no such error")
            self.file.set_class(row.id, annotator, error_class)

    def _row(self, position: int) -> Row:
        if not 0 <= position < len(self.rows):
            raise IndexError(position)
        return self.rows[position]

    def _called(self, row: Row, label: float | None) -> bool | None:
        """Return the metric's verdict on a row if it differs from a label, otherwise None."""
        called = self.verdicts.get(row.index)
        return None if called is None or label is None or called == (label >= RIGHT_FROM) else called

    def state(self, annotator: str, position: int | None = None) -> dict[str, Any]:
        """Return what the page shows, as JSON values.

        Without a position, show the annotator's first row without a label, or the last row if all rows have one.

        Raises:
            IndexError: There is no row at this position.
        """
        with self._lock:
            own = [self.file.label(row.id, annotator) for row in self.rows]
            flags = [self.file.flags.get(row.id, {}).get(annotator) for row in self.rows]
            ratings = self._ratings()
            done = [label is not None or bool(flagged) for label, flagged in zip(own, flags, strict=True)]
            if position is None:
                first = _open_after(done, -1)
                position = len(own) - 1 if first is None else first
            row = self._row(position)
            error = self._error(row, annotator)
        return {
            "position": position,
            "total": len(own),
            "labelled": _count(own),
            "uncertain": self.uncertain,
            "uncertainLabelled": _count(own[: self.uncertain]),
            "flagged": sum(done) - _count(own),
            "label": own[position],
            "flags": _shown_flags(row, flags[position]),
            "areFlagsStored": flags[position] is not None,
            "error": error,
            "next": _open_after(done, position),
            "row": self._shown(row),
            "agreement": _agreement(ratings, self.file.annotators),
        }

    def counts(self) -> dict[str, int]:
        """Return the number of labelled rows by annotator, in file order."""
        with self._lock:
            return {name: sum(name in given for given in self.file.labels.values()) for name in self.file.annotators}

    def _error(self, row: Row, annotator: str) -> dict[str, Any] | None:
        """Return the metric's error and its possible classes, or None if label and verdict agree or one is missing."""
        called = self._called(row, self.file.label(row.id, annotator))
        if called is None:
            return None
        classes = [{"name": each.name, "text": each.text} for each in classes_for(called_right=called)]
        return {"calledRight": called, "classes": classes, "given": self.file.classes.get(row.id, {}).get(annotator)}

    def _ratings(self) -> list[list[float]]:
        return [
            [given.get(name, math.nan) for name in self.file.annotators]
            for given in self.file.labels.values()
            if len(given) > 1
        ]

    def _shown(self, row: Row) -> dict[str, Any]:
        item = row.item or {}
        references = item.get("references") or []
        album = Album(self.folder, self.folder)
        pictures = [album.picture(named) for named in row.pictures[:MOST_PICTURES]]
        return {
            "id": row.id[:200],
            "question": _cut(item.get("question")),
            "caption": _cut(item.get("caption")),
            "references": [_cut(each) for each in ([references] if isinstance(references, str) else references)],
            "prediction": _cut(item["prediction"]),
            "pictures": [{"name": each.name, "source": each.source, "note": each.note} for each in pictures if each],
        }


def _cut(text: object) -> str:
    shown = "" if text is None else str(text).encode(errors="replace").decode()
    return shown if len(shown) <= _CHARACTERS else f"{shown[:_CHARACTERS]}…"


def _count(labels: Iterable[float | None]) -> int:
    return sum(label is not None for label in labels)


def _open_after(done: Sequence[bool], position: int) -> int | None:
    """Return the next position that is not done, going round at the end, or None if all other rows are done."""
    places = (*range(position + 1, len(done)), *range(position))
    return next((place for place in places if not done[place]), None)


def _shown_flags(row: Row, stored: Sequence[str] | None) -> list[dict[str, Any]]:
    """Return each flag with its state and the reason of a proposal. Proposed flags are set until some are stored."""
    proposed = proposed_flags(row.item or {})
    given = {*proposed, *row.flags} if stored is None else set(stored)
    return [{"name": flag, "isSet": flag in given, "reason": _cut(proposed.get(flag))} for flag in FLAGS]


def _agreement(ratings: Sequence[Sequence[float]], annotators: Sequence[str]) -> dict[str, Any]:
    if not ratings:
        return {"items": 0, "alpha": "", "pairs": []}
    found = annotator_agreement(np.array(ratings, dtype=np.float64), resamples=_DRAWS)
    names = dict(enumerate(annotators, 1))
    return {
        "items": found.items,
        "alpha": _written(found.alpha["nominal"]),
        "pairs": [
            {"names": [names[pair.first], names[pair.second]], "items": pair.items, "kappa": _written(pair.kappa)}
            for pair in found.pairs
        ],
    }


def _written(estimate: Estimate) -> str:
    if math.isnan(estimate.value):
        return "undefined"
    interval = "" if math.isnan(estimate.low) else f" [{estimate.low:.2f}, {estimate.high:.2f}]"
    return f"{estimate.value:.2f}{interval}"
