"""Scores and labels collected as columns, row by row; labels of an evaluator, and scores of earlier runs."""

from __future__ import annotations

import itertools
import math
from array import array
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gradewire.errors import InvalidRequest
from gradewire.metrics.choice import MetricDefaults, choose_metrics
from gradewire.results import ScoreWarning
from gradewire_cli.problems import InputError
from gradewire_cli.results.accuracy_tables import People
from gradewire_cli.results.results_table import TABLE_SUFFIXES
from gradewire_cli.results.resumable_output import read_results, verdict
from gradewire_cli.results.tallies import MetricTally
from gradewire_stats.agreement.rows import JudgedRows
from gradewire_stats.consensus import LabelRule, consensus, ratings_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from gradewire_cli.rows.row import Row

# The most frequent ones are listed: a column of free remarks has as many flags as rows.
_SHOWN_FLAGS = 10


def label_named(labels: Sequence[str], name: str, option: str) -> str:
    """Return the label that an option names: by itself, or as --metrics may write it (smile:v1 for smile).

    Raises:
        InputError: There is none; names those that there are.
    """
    if name in labels:
        return name
    try:
        written = choose_metrics(name, MetricDefaults()).labels
    except InvalidRequest:
        written = ()
    if len(written) != 1 or written[0] not in labels:
        raise InputError(f"{option} {name}: there is no such metric, there are {', '.join(labels)}")
    return written[0]


@dataclass(slots=True)
class EvaluatorLabels:
    """Scores and verdicts of one metric, which the others are compared with.

    A row counts where the evaluator has a score, and a verdict too if it gives verdicts at all.

    Attributes:
        label: The metric as its results are called; "" before the first row.
    """

    name: str
    label: str = ""
    tally: MetricTally = field(default_factory=MetricTally)
    left_out: int = 0
    _scores: array[float] = field(default_factory=lambda: array("d"))
    _verdicts: array[float] = field(default_factory=lambda: array("d"))

    def take(self, output: Mapping[str, Any]) -> bool:
        """Take in an output row; False where the row does not count."""
        results = output["scores"]
        self.label = self.label or label_named(list(results), self.name, "--against")
        result = results[self.label]
        self.tally.add(self.label, result, identifier=output["id"])
        judged = verdict(self.label, result)
        unlike_others = bool(self._scores) and (judged is None) == self.has_verdicts
        if result["score"] is None or unlike_others:
            self.left_out += 1
            return False
        self._scores.append(result["score"])
        self._verdicts.append(math.nan if judged is None else float(judged))
        return True

    @property
    def has_verdicts(self) -> bool:
        """Whether it calls answers right or wrong."""
        return bool(self._verdicts) and not math.isnan(self._verdicts[0])

    @property
    def last_score(self) -> float:
        """Score of the row that was taken in last."""
        return self._scores[-1]

    def verdicts(self) -> NDArray[np.float64]:
        """Return float64[rows that count]: 1 right, 0 wrong, NaN without verdicts."""
        return np.array(self._verdicts)

    def summary(self, more: str = "") -> str:
        """Return a line for people: what reproduces it, `more`, and what failed."""
        return self.tally.summary(self.label, f" (stands in the place of people{more})")


@dataclass(slots=True, kw_only=True)
class LabelledRows:
    """Columns under construction, one entry per labelled row.

    Attributes:
        rule: How annotators' labels become one; None: the row's own label, else their mean.
        against: The evaluator that stands in the place of people; None where people labelled the rows.
        tallies: Counts of the labelled rows by label of the metric.
        first_unreadable: Place and label of the first row whose label cannot be read; "" without any.
        flags: Labelled rows by flag, those left out included.
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
        """Return labelled rows taken in so far."""
        return len(self._labels)

    def labelled(self, rows: Iterator[Row]) -> Iterator[Row]:
        """Yield the rows with a usable label; counts those left out, each for its reason.

        With an evaluator in the place of people these are all rows: which have a label, `add` finds.
        """
        for row in rows:
            if self.against is not None:
                if self._has_no_flag(row):
                    yield row
            elif row.human.unreadable:
                self.unreadable += 1
                self.first_unreadable = self.first_unreadable or f"{row.position}: {row.human.unreadable}"
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
        """Take in a row that `labelled` gave, and its output row."""
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
        """Return the columns as arrays; without groups unless rows are grouped.

        Raises:
            InputError: No row has a label that can be read, all were left out for their flags, the rule is not for
                such labels, or there is no metric beside the one that stands in the place of people.
        """
        if not self._labels and self.against is not None:
            raise InputError(f"no row has a score of {self.against.name}: {self.against.summary()}")
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
        """Return `judged`, with verdicts as labels where an evaluator that gives any stands in the place of people."""
        rows = self.judged(with_groups=with_groups)
        if self.against is None or not self.against.has_verdicts:
            return rows
        return replace(rows, labels=self.against.verdicts())

    def certain(self, label: str) -> NDArray[np.bool_]:
        """Return bool[rows]: False where a metric marks its verdict UNCERTAIN."""
        return np.frombuffer(bytes(self._certain[label]), dtype=np.bool_)

    def ratings(self) -> NDArray[np.float64]:
        """Return float64[rows, annotators] of the rows that several annotators could label; NaN where one did not."""
        try:
            return ratings_of([_numbers(row) for row in self._annotations if len(row) > 1])
        except ValueError as error:
            raise InputError(f"the labels: {error}") from error

    def lengths_words(self) -> NDArray[np.float64]:
        """Return float64[rows], words between spaces of each prediction; NaN where it cannot be read."""
        return np.array(self._words)

    @property
    def people(self) -> People:
        """Names of the annotators."""
        return People() if self.against is None else People.evaluator(self.against.label)

    @property
    def unreadable_labels(self) -> str:
        """The number of labels that cannot be read, with the first of them."""
        first = f"first at {self.first_unreadable}; --label-map says what words mean"
        return f"the label of {self.unreadable} rows cannot be read ({first})"

    @property
    def alone(self) -> int:
        """Rows that keep their own label although --labels says a rule for annotators: they have no other."""
        return sum(not annotations for annotations in self._annotations) if self.rule else 0

    def left_out(self) -> list[str]:
        """Return sentences that say which rows and statistics are left out, and why."""
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


def with_stored_scores(rows: Iterator[Row], paths: Sequence[Path]) -> Iterator[tuple[Row, dict[str, Any]]]:
    """Join rows with the output of earlier runs, by row number; the metrics of several files stand side by side.

    Raises:
        InputError: A file is not there, is no such output, ends too early, was made from other rows, or has a metric of
            the name that another file has.
    """
    copies = itertools.tee(rows, len(paths))
    for joined in zip(*(_joined(copy, path) for copy, path in zip(copies, paths, strict=True)), strict=True):
        row, first = joined[0]
        scores: dict[str, Any] = {}
        for path, (_, output) in zip(paths, joined, strict=True):
            if repeated := scores.keys() & output["scores"].keys():
                raise InputError(f"{path} has {min(repeated)}, which another --scores file has too: leave one out")
            scores |= output["scores"]
        yield row, {**first, "scores": scores}


def _joined(rows: Iterator[Row], path: Path) -> Iterator[tuple[Row, dict[str, Any]]]:
    if not path.is_file():
        raise InputError(f"{path}: there is no such file")
    if path.suffix.lower() in TABLE_SUFFIXES:
        raise InputError(f"{path}: --scores reads JSONL, not tables: gradewire score --out FILE.jsonl writes it")
    results = read_results(path)
    output: dict[str, Any] = {"index": -1}
    labels: list[str] | None = None
    for row in rows:
        while output["index"] < row.index:
            _, output = next(results, (0, {"index": math.inf}))
        if output["index"] != row.index:
            raise InputError(f"{path} has no scores of {row.position}: finish it with gradewire score --resume")
        if output["digest"] != row.digest:
            raise InputError(f"{path} was made from another text at {row.position}: score the file again")
        labels = labels or list(output["scores"])
        if list(output["scores"]) != labels:
            raise InputError(
                f"{path}: the metrics at {row.position} are not those of the first row: score the file again"
            )
        yield row, output
