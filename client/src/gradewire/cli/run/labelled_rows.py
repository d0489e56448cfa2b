"""Collects scores and labels, row by row, as columns."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gradewire.agreement import JudgedRows
from gradewire.agreement.annotators.labels import consensus, ratings_of
from gradewire.cli.output.summary import MetricTally, verdict
from gradewire.cli.problems import InputError
from gradewire.results import ScoreWarning

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from gradewire.agreement.annotators.labels import LabelRule
    from gradewire.cli.input.rows import Row
    from gradewire.cli.run.evaluator_labels import EvaluatorLabels

# The most frequent ones are told: a column of free remarks has as many flags as rows.
_SHOWN_FLAGS = 10


@dataclass(slots=True, kw_only=True)
class LabelledRows:
    """Columns under construction, one entry per labelled row.

    Attributes:
        rule: How annotators' labels become one; None: the row's own label, else their mean.
        without_flags: Rows with one of these flags are left out.
        keeps_rows: Whether whole rows are kept, for those who show texts.
        against: The evaluator that stands in the place of people; None where people labelled the rows.
        tallies: Counts of the labelled rows by label of the metric.
        unlabelled: Rows left out because they have no label.
        unreadable: Rows left out because their label cannot be read.
        first_unreadable: Where the first of these stands and what its label is; "" without any.
        flags: Labelled rows by flag, those left out included.
        flagged_out: Rows left out for a flag.
        kept: Rows with their output, when `keeps_rows`.
        server_version: Version of gradewire where they were scored; "" where scores were read.
    """

    rule: LabelRule | None = None
    without_flags: frozenset[str] = frozenset()
    keeps_rows: bool = False
    against: EvaluatorLabels | None = None
    tallies: dict[str, MetricTally] = field(default_factory=dict)
    unlabelled: int = 0
    unreadable: int = 0
    first_unreadable: str = ""
    flags: Counter[str] = field(default_factory=Counter)
    flagged_out: int = 0
    kept: list[tuple[Row, Mapping[str, Any]]] = field(default_factory=list)
    server_version: str = ""
    _scores: dict[str, array[float]] = field(default_factory=dict)
    _verdicts: dict[str, array[float]] = field(default_factory=dict)
    _certain: dict[str, bytearray] = field(default_factory=dict)
    _labels: array[float] = field(default_factory=lambda: array("d"))
    _annotations: list[tuple[float | None, ...]] = field(default_factory=list)
    _words: array[float] = field(default_factory=lambda: array("d"))
    _datasets: list[str] = field(default_factory=list)
    _models: list[str] = field(default_factory=list)
    _groups: list[str] = field(default_factory=list)
    _questions: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        """Labelled rows taken in so far."""
        return len(self._labels)

    def labelled(self, rows: Iterator[Row]) -> Iterator[Row]:
        """The rows with a usable label; counts those left out, each for its reason.

        With an evaluator in the place of people these are all rows: which have a label, `add` finds.
        """
        for row in rows:
            if self.against is not None:
                if self._has_no_flag(row):
                    yield row
            elif row.human.unreadable:
                self.unreadable += 1
                self.first_unreadable = self.first_unreadable or f"{row.place}: {row.human.unreadable}"
            elif row.human.value is None:
                self.unlabelled += 1
            elif self._has_no_flag(row):
                yield row

    def _has_no_flag(self, row: Row) -> bool:
        self.flags.update(set(row.flags))
        out = not self.without_flags.isdisjoint(row.flags)
        self.flagged_out += out
        return not out

    def add(self, row: Row, output: Mapping[str, Any]) -> None:
        """Takes in a row that `labelled` gave, and its output row.

        Raises:
            InputError: The output has no result of the evaluator that stands in the place of people.
        """
        label_value, annotations = row.human.value, row.human.annotations
        own = ""
        if self.against is not None:
            if not self.against.take(output):
                return
            label_value, annotations, own = self.against.last_score, (), self.against.label
        for label, result in output["scores"].items():
            if label == own:
                continue
            self.tallies.setdefault(label, MetricTally()).add(label, result, identifier=row.id)
            judged = verdict(label, result)
            score = math.nan if result["score"] is None else result["score"]
            self._scores.setdefault(label, array("d")).append(score)
            self._verdicts.setdefault(label, array("d")).append(math.nan if judged is None else float(judged))
            certain = ScoreWarning.UNCERTAIN not in result.get("warnings", ())
            self._certain.setdefault(label, bytearray()).append(certain)
        self._labels.append(math.nan if label_value is None else label_value)
        self._annotations.append(annotations)
        self._words.append(len(str(row.item["prediction"]).split()) if row.item else math.nan)
        self._datasets.append(row.dataset)
        self._models.append(row.model)
        self._groups.append(row.group)
        self._questions.append(row.question_key)
        if self.keeps_rows:
            self.kept.append((row, output))

    def judged(self, *, with_groups: bool = False) -> JudgedRows:
        """The columns as arrays; without groups unless these are told apart.

        Raises:
            InputError: No row has a label that can be read, all were left out for their flags, the rule is not for
                such labels, or there is no metric beside the one that stands in the place of people.
        """
        if not self._labels and self.against is not None:
            raise InputError(f"no row has a score of {self.against.name}: {self.against.told()}")
        if self._labels and not self._scores and self.against is not None:
            raise InputError(f"--against {self.against.name}: the scores have no other metric, to compare with it")
        if not self._labels and self.unreadable:
            raise InputError(f"{self.unreadable_labels}, and no row has one that can: give --map label=COLUMN")
        if not self._labels and self.flagged_out:
            raise InputError(f"--without-flag leaves no row: all {self.flagged_out} have such a flag")
        if not self._labels:
            raise InputError("no row has a label (looked for label, human_score, labels): give --map label=COLUMN")
        return JudgedRows(
            scores={label: np.array(column) for label, column in self._scores.items()},
            verdicts={label: np.array(column) for label, column in self._verdicts.items()},
            labels=self._agreed(),
            datasets=self._datasets,
            models=self._models,
            questions=self._questions,
            groups=self._groups if with_groups else (),
        )

    def judged_by_verdict(self, *, with_groups: bool = False) -> JudgedRows:
        """As `judged`, with the evaluator's verdicts as labels where it stands in the place of people and has any."""
        rows = self.judged(with_groups=with_groups)
        if self.against is None or not self.against.has_verdicts:
            return rows
        return replace(rows, labels=self.against.verdicts())

    def certain(self, label: str) -> NDArray[np.bool_]:
        """bool[rows]: False where a metric marks its verdict UNCERTAIN."""
        return np.frombuffer(bytes(self._certain[label]), dtype=np.bool_)

    def ratings(self) -> NDArray[np.float64]:
        """float64[rows, annotators] of the rows to which several annotators could speak; NaN where one did not.

        Raises:
            InputError: A row has more labels than anyone has annotators.
        """
        try:
            return ratings_of([_numbers(row) for row in self._annotations if len(row) > 1])
        except ValueError as error:
            raise InputError(f"the labels: {error}") from error

    def lengths_words(self) -> NDArray[np.float64]:
        """float64[rows], words between spaces of each prediction; NaN where it cannot be read."""
        return np.array(self._words)

    @property
    def unreadable_labels(self) -> str:
        """How many labels cannot be read, with the first of them."""
        first = f"first at {self.first_unreadable}; --label-map says what words mean"
        return f"the label of {self.unreadable} rows cannot be read ({first})"

    @property
    def alone(self) -> int:
        """Rows that keep their own label although --labels says a rule for annotators: they have no other."""
        return sum(not annotations for annotations in self._annotations) if self.rule else 0

    def left_out(self) -> list[str]:
        """Sentences that say which rows and figures are left out, and why."""
        sentences = []
        if self.against is not None and self.against.left_out:
            sentences.append(
                f"{self.against.left_out} rows have no score or no verdict of {self.against.label} and were left out"
            )
        if self.unlabelled:
            sentences.append(f"{self.unlabelled} rows have no label and were left out")
        if self.unreadable:
            sentences.append(f"{self.unreadable_labels}; they were left out")
        if self.flags:
            most = sorted(self.flags.most_common(_SHOWN_FLAGS))
            counts = ", ".join(f"{flag if flag.isprintable() else ascii(flag)} {count}" for flag, count in most)
            more = f" and {len(self.flags) - len(most)} further flags" if len(self.flags) > len(most) else ""
            sentences.append(f"flagged rows: {counts}{more}; {self.flagged_out or 'none'} left out")
        known = [label for label in self._labels if not math.isnan(label)]
        if self.against is None and known and not (min(known) >= 0 and max(known) <= 1):
            sentences.append(
                f"labels run from {min(known):g} to {max(known):g}: nobody said what counts as right, so there is no "
                "AUC and no figure of verdicts (labels in [0, 1] count from 0.5; --label-map says which grades do)"
            )
        if self.alone:
            sentences.append(f"{self.alone} rows have one label, which stands as it is under --labels {self.rule}")
        return sentences

    def _agreed(self) -> NDArray[np.float64]:
        labels = np.array(self._labels)
        if self.rule is None:
            return labels
        try:
            agreed = consensus(ratings_of([_numbers(row) for row in self._annotations]), self.rule)
        except ValueError as error:
            raise InputError(f"--labels {self.rule}: {error}") from error
        return np.where(np.isnan(agreed), labels, agreed)


def _numbers(annotations: Sequence[float | None]) -> list[float]:
    return [math.nan if label is None else label for label in annotations]
